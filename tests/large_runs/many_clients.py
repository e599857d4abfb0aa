"""A run of the broker with as many clients and topics as asked, as node processes would have left it.

Every publisher numbers the topics of its region and publishes an event of each in turn; every subscriber
follows the few topics that the plan says, and each tenth leaves one of them on the way. The link between two
regions is cut and comes back; what would cross it meanwhile is lost, as the broker loses it. There are no
captures: a hundred thousand captures are no machine's work.
"""

import zlib
from pathlib import Path

import numpy as np

from experiments.loader import load_experiment
from experiments.planned.plan import Plan
from experiments.records.json_files import read_json, write_json
from experiments.records.run_record import Outcome, RunPhase
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RECORD_FIELDS, RecordKind, encode_file_header
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from topologies.loader import load_topology

FILE = str(Path(__file__).parents[1] / "broker" / "brokers.yaml")
MS, S = 1_000_000, 1_000_000_000
ZERO_NS = 1_700_000_000 * S
FOLLOWED = 4  # topics by each client
CUT_S, RESTORED_S, LENGTH_S = 4.5, 7.5, 12
LAN_NS = 1 * MS  # one way between a host and its region's bridge
LEFT_NS = 6 * S
RECORD = np.dtype(list(RECORD_FIELDS))
CUT = {"r2", "r3"}


def make_run(out: Path, *, clients: int, topics: int, events: int = 10) -> RunDirectory:
    """Make the run's directory below `out`. clients: a multiple of four. events: of each topic."""
    changes = [f"roles.subscriber={clients // 4}", f"workload.topics={topics}", "captures=none"]
    experiment = load_experiment(
        FILE, [*changes, f"workload.subscriptions={{each: {FOLLOWED}}}", "expect=[]"]
    )
    plan = make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="auto")
    described = {"experiment": experiment.model_dump(mode="json"), "topology": {}}
    run = prepare(out, plan, described)
    times_ns = _published_ns(topics, events)
    places = {region.name: number for number, region in enumerate(plan.regions)}
    owner = np.array([places[each.region] for each in plan.streams])
    for number, region in enumerate(plan.regions):
        _publishers(run, region.name, np.flatnonzero(owner == number), times_ns)
        _subscribers(run, plan, region.name, times_ns, owner)
    end(run, plan)
    return run


def _published_ns(topics: int, events: int) -> np.ndarray:
    """When each event of each topic is published, since time 0."""
    start = np.arange(topics) * 7919 % 1000 * MS
    return start[:, None] + (LENGTH_S - 1) * S * np.arange(events) // events


def records(kind: int, stream, seq, count, t_ns, crc=0, running=0) -> np.ndarray:
    shape = np.broadcast_shapes(*(np.shape(each) for each in (kind, stream, seq, t_ns)))
    found = np.zeros(shape, RECORD)
    given = {"kind": kind, "stream": stream, "first_seq": seq, "count": count, "covered": count,
             "time_ns": np.asarray(t_ns) + ZERO_NS, "batch_crc": crc, "running_crc": running}  # fmt: skip
    for name, values in given.items():
        found[name] = values
    return found


SESSION = records(RecordKind.SESSION, 0, 0, 0, -2 * S).tobytes()


def _crcs(topics: np.ndarray, events: int, came: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the CRCs of each event, and of each with all earlier delivered ones."""
    alone, running = np.zeros((2, len(topics), events), np.uint32)
    for row, topic in enumerate(topics.tolist()):
        crc = 0
        for place in range(events):
            payload = b"%020d" % (topic << 32 | place + 1)
            alone[row, place] = zlib.crc32(payload)
            if came[row, place]:
                crc = zlib.crc32(payload, crc)
            running[row, place] = crc
    return alone, running


def _publishers(run: RunDirectory, region: str, mine: np.ndarray, times_ns: np.ndarray) -> None:
    events = times_ns.shape[1]
    alone, running = _crcs(mine, events, np.ones((len(mine), events), bool))
    seq = np.arange(1, events + 1)
    made = records(RecordKind.PUBLISHED, mine[:, None], seq, 1, times_ns[mine], alone, running).ravel()
    _write(run, f"{region}-publisher-0", made[np.argsort(made["time_ns"], kind="stable")])
    _write(run, f"{region}-broker-0", made[:0])


def _subscribers(run: RunDirectory, plan: Plan, region: str, times_ns, owner) -> None:
    topics, events = times_ns.shape
    delays = np.array([_delay_ns(plan, each.name, region) for each in plan.regions])
    came_ns = times_ns + delays[owner][:, None]
    between = (times_ns >= CUT_S * S - 60 * MS) & (times_ns < RESTORED_S * S)
    crosses = np.array([{each.name, region} == CUT for each in plan.regions])[owner]
    came = ~(crosses[:, None] & between)
    alone, running = _crcs(np.arange(topics), events, came)
    members = [each for each in plan.processes if each.region == region and each.subscriptions]
    hosts = [each.host for each in members]
    followed = np.array([sorted(wanted.number for wanted in each.subscriptions) for each in members])
    leaves = np.zeros((len(hosts), FOLLOWED), bool)
    leaves[::10, 0] = True
    seq = np.arange(1, events + 1)
    t_ns = came_ns[followed]
    taken = records(
        RecordKind.DELIVERED, followed[..., None], seq, 1, t_ns, alone[followed], running[followed]
    )
    there = came[followed] & ~(leaves[..., None] & (t_ns >= LEFT_NS))
    asking = records(RecordKind.SUBSCRIBING, followed[..., None], 0, 0, -1 * S)
    asked = records(RecordKind.SUBSCRIBED, followed[..., None], 1, 0, -S + 4 * MS)
    following = (came_ns[followed] < LEFT_NS).sum(axis=2, keepdims=True) + 1
    leaving = records(RecordKind.UNSUBSCRIBING, followed[..., None], 0, 0, LEFT_NS - 4 * MS)
    left = records(RecordKind.UNSUBSCRIBED, followed[..., None], following, 0, LEFT_NS)
    rows = np.concatenate((asking, asked, taken, leaving, left), axis=2).reshape(len(hosts), -1)
    always = np.ones((*followed.shape, 2), bool)
    kept = np.concatenate((always, there, always & leaves[..., None]), axis=2).reshape(len(hosts), -1)
    for host, some, mask in zip(hosts, rows, kept, strict=True):
        mine = some[mask]
        _write(run, host, mine[np.argsort(mine["time_ns"], kind="stable")])


def _delay_ns(plan: Plan, source: str, region: str) -> int:
    """From a publisher to a subscriber, over the brokers."""
    wan = next((link.forward.delay_us for link in plan.links if {link.a, link.b} == {source, region}), None)
    return 4 * LAN_NS + (0 if wan is None else wan * 1000 + 2 * LAN_NS)


def _write(run: RunDirectory, host: str, rows: np.ndarray) -> None:
    run.host_deliveries(host).write_bytes(encode_file_header() + SESSION + rows.astype(RECORD).tobytes())


def end(run: RunDirectory, plan: Plan) -> None:
    """Write what the simulator writes at the end."""
    content = read_json(run.run_json)
    times = {
        "started": -3,
        "network": -3,
        "ready": -1,
        "zero": 0,
        "stopped": LENGTH_S,
        "drained": LENGTH_S + 1.5,
    }
    content["times"] = {
        f"{name}_ns": ZERO_NS + int(at * S) for name, at in (times | {"ended": LENGTH_S + 2}).items()
    }
    content["links"] = "simulator"
    for index, change in enumerate(plan.changes):
        at_ns = ZERO_NS + change.at_us * 1000
        content["changes"].append({"index": index, "requested_ns": at_ns, "applied_ns": at_ns})
    exited = {"code": 0, "signal": None, "time_ns": content["times"]["drained_ns"], "expected": True}
    content["processes"] = [
        {"name": each.name, "host": each.host, "pid": None, "exit": exited} for each in plan.processes
    ]
    content["phase"], content["outcome"] = RunPhase.COLLECTED, Outcome.COMPLETED
    write_json(run.run_json, content)
