"""A run of the exchange with a given number of subscribers and events, as node processes would have left it.

All subscribe before the first event, each event reaches its subscribers 20 ms after its publication, and the
link between two regions is cut for a while: events published in one of them then do not reach the other,
because the exchange loses them. There are no captures.
"""

import zlib
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from experiments.loader import load_experiment
from experiments.planned.plan import Plan
from experiments.records.rundir import RunDirectory
from node.core.content.content import attributes_of
from node.core.content.content_matching import EventIndex
from node.core.content.content_measures import event, interest
from node.core.content.event_values import EventValues
from node.core.deliveries import RecordKind, encode_file_header
from node.core.measures import Columns
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from tests.large_runs.many_clients import (
    CUT_S,
    LENGTH_S,
    MS,
    RECORD,
    RESTORED_S,
    SESSION,
    ZERO_NS,
    S,
    end,
    records,
)
from topologies.loader import load_topology

FILE = str(Path(__file__).parents[1] / "broker" / "exchange.yaml")
WAY_NS = 20 * MS
CUT = {"r2", "r3"}
TEMPLATES = "[{ranges: {symbol: equal, high: above}}, {ranges: {symbol: equal, low: below}}]"


def make_run(out: Path, *, clients: int, each: int, events: int, lose_all: bool = False) -> RunDirectory:
    """Make the run's directory below `out`. clients: a multiple of four.

    each: subscriptions per client. events: of each of four publishers. lose_all: deliver nothing.
    """
    faults = f"[{{name: cut, at: {CUT_S}s, cut: [r2, r3], for: {RESTORED_S - CUT_S:g}s}}]"
    experiment = load_experiment(
        FILE,
        [
            f"roles.default.subscriber={clients // 4}", f"roles.r0.subscriber={clients // 4}",
            "workload.preset=stock-quotes", "workload.attributes=null", "workload.event_size=60B",
            f"workload.subscriptions={{each: {each}, templates: {TEMPLATES}}}", f"faults={faults}",
            "captures=none", "expect=[]", "contract={survives: [cut]}", f"duration={LENGTH_S}s",
        ],
    )  # fmt: skip
    plan = make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="auto")
    described = {"experiment": experiment.model_dump(mode="json", by_alias=True), "topology": {}}
    run = prepare(out, plan, described)
    published = [_publish(run, plan, stream.number, events) for stream in plan.streams]
    _subscribers(run, plan, [np.concatenate(each) for each in zip(*published, strict=True)], lose_all)
    _write(run, "r0-exchange-0", np.zeros(0, RECORD))
    end(run, plan)
    return run


def _publish(run: RunDirectory, plan: Plan, stream: int, events: int) -> tuple[np.ndarray, np.ndarray]:
    """Let a stream's publisher write down its events; their values, and its records."""
    region = plan.streams[stream].region
    [publisher] = [each for each in plan.having("publisher") if each.region == region]
    values = EventValues(plan.workload, publisher.seed, stream, len(plan.streams)).many(0, events)
    every = np.arange(events)
    times_ns = every * ((LENGTH_S - 1) * S // events) + stream * 7
    payloads = [b"%020d" % (stream << 32 | n) for n in range(events)]
    alone = [zlib.crc32(payload) for payload in payloads]
    running = list(accumulate(payloads, lambda crc, payload: zlib.crc32(payload, crc), initial=0))[1:]
    made = records(RecordKind.PUBLISHED, stream, every + 1, 1, times_ns, alone, running)
    _write(run, publisher.host, made)
    rows = zip(made["time_ns"].tolist(), values.tolist(), strict=True)
    told = [(t_ns, event(stream, number, row)) for number, (t_ns, row) in enumerate(rows, 1)]
    run.host_measures(publisher.host).write_bytes(Columns().encode(told))
    return values, made


def _subscribers(run: RunDirectory, plan: Plan, published: Sequence[np.ndarray], lose_all: bool) -> None:
    values, made = published
    index = EventIndex([(each.low, each.high) for each in attributes_of(plan.workload)], values.T)
    region_of = np.array([each.region for each in plan.streams])
    t_ns = made["time_ns"] - ZERO_NS
    within = (t_ns >= CUT_S * S) & (t_ns < RESTORED_S * S)
    for process in plan.having("subscriber"):
        asked = np.array([each.ranges for each in process.subscriptions])
        matched = index.matches(asked[..., 0].T, asked[..., 1].T)
        mine = np.unique(np.concatenate([event for _, event in matched]))
        crossing = np.array([{region, process.region} == CUT for region in region_of])
        came = made[mine[~(within[mine] & crossing[made["stream"][mine]])]][: 0 if lose_all else None]
        came["kind"] = RecordKind.DELIVERED
        came["time_ns"] += WAY_NS
        _write(run, process.host, came[np.argsort(came["time_ns"], kind="stable")])
        told = [
            (ZERO_NS + at_ns, interest(kind, 0, each))
            for at_ns, kind in ((-1 * S, RecordKind.SUBSCRIBING), (-S // 2, RecordKind.SUBSCRIBED))
            for each in process.subscriptions
        ]
        run.host_measures(process.host).write_bytes(Columns().encode(told))


def _write(run: RunDirectory, host: str, rows: np.ndarray) -> None:
    run.host_deliveries(host).write_bytes(encode_file_header() + SESSION + rows.astype(RECORD).tobytes())
