"""A simple simulator of a run with known results: what every host saw and recorded, batch by batch.

Four regions with one proxy, one driver and two clients each (the link-failure experiment, shortened). Each
stream gets a batch of 10 events every 20 ms. The link r2-r3 is cut at 5 s; the streams r2 and r3 come to each
other's region by r1 from 6 s on; the link is back at 9 s, and the streams return to it at 9.5 s. Delays are
as configured, to the nanosecond, so every figure can be worked out by hand.
"""

import json
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines import schemas
from analysis.timelines.delivery.stream_paths import sources
from analysis.timelines.delivery.stream_pieces import from_events
from analysis.timelines.recovering.delivery_history import DeliveryHistory
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.loader import load_experiment
from experiments.planned.plan import plan_to_json
from experiments.records.run_record import SCHEMA, RunRecord, record_from_json
from node.core.deliveries import RecordKind
from testbed.planning import make_plan
from topologies.loader import load_topology

MS = 1_000_000
S = 1_000 * MS
ZERO = 1_700_000_000 * S
CUT, SWITCHED, RESTORED, RETURNED, END = 5 * S, 6 * S, 9 * S, 9_500 * MS, 14 * S
BATCH, EVERY = 10, 20 * MS
EVENT_BYTES = 10
LAN = 1 * MS
WAN = {
    ("r0", "r1"): 15,
    ("r2", "r3"): 15,
    ("r0", "r2"): 40,
    ("r0", "r3"): 45,
    ("r1", "r2"): 35,
    ("r1", "r3"): 40,
}
REGIONS = ("r0", "r1", "r2", "r3")
DETOUR = "r1"


def hop_ns(a: str, b: str) -> int:
    """From proxy to proxy."""
    return WAN.get((a, b), WAN.get((b, a), 0)) * MS + 2 * LAN


def run_json(*overrides: str, name: str = "link-failure", **fields: Any) -> dict[str, Any]:
    """run.json of a run of an experiment that went well."""
    experiment, content = json.loads(_planned(name, overrides))
    changes = [
        {"index": index, "requested_ns": ZERO + at_us * 1000, "applied_ns": ZERO + at_us * 1000}
        for index, at_us in enumerate(change["at_us"] for change in content["changes"])
    ]
    captures = [
        {key: capture[key] for key in ("host", "link", "side", "interface")}
        | {"file": f"captures/{capture['file']}", "packets": 1, "kernel_drops": 0}
        for capture in content["captures"]
    ]
    return {
        "schema": SCHEMA,
        "run": "a-run",
        "experiment": experiment,
        "plan": content,
        "seed": 1,
        "links": "relay",
        "phase": "collected",
        "outcome": "completed",
        "problems": [],
        "times": {
            "started_ns": ZERO - 3 * S,
            "zero_ns": ZERO,
            "stopped_ns": ZERO + END,
            "drained_ns": ZERO + END + S,
            "ended_ns": ZERO + END + 2 * S,
        },
        "changes": changes,
        "processes": [
            {
                "name": process["name"],
                "host": process["host"],
                "exit": {"code": 0, "signal": None, "time_ns": ZERO + END + S, "expected": True},
            }
            for process in content["processes"]
        ],
        "captures": captures,
        "probes": [],
        "counters": [],
        "cpu": [{"t_ns": ZERO + second * S, "busy": 0.3} for second in range(15)],
        **fields,
    }


@cache
def _planned(name: str, overrides: tuple[str, ...]) -> str:
    """Return the shortened experiment and its plan as JSON."""
    shortened = (
        "duration=14s",
        "faults=[{name: cut, at: 5s, cut: [r2, r3]}, {name: restore, at: 9s, restore: [r2, r3]}]",
    )
    experiment = load_experiment(name, [*shortened, *overrides])
    plan = make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="relay")
    return json.dumps([experiment.model_dump(mode="json"), plan_to_json(plan)])


COUNTERS: dict[str, Any] = {
    "link": "r0-r1",
    "direction": "forward",
    **dict.fromkeys(("frames", "bytes", "dropped_loss", "dropped_queue", "dropped_blackhole"), 0),
    "dropped_kernel": 0,
}
"""FailoverKind stands in run.json about a direction of a link that did nothing."""


def run_record(*overrides: str, **fields: Any) -> RunRecord:
    """Return the record of such a run."""
    return record_from_json(run_json(*overrides, **fields))


def facts_of(*overrides: str, **fields: Any) -> RunMetadata:
    """RunMetadata of such a run."""
    return read_metadata(run_record(*overrides, **fields))


def history_of(events: pa.Table, metadata: RunMetadata, stream: int) -> DeliveryHistory:
    """Return the history of a stream from its rows of `schemas.EVENTS`."""
    [block] = from_events(events, metadata.clients).blocks()
    return DeliveryHistory(metadata, stream, block, sources(events, metadata))


@dataclass
class World:
    """The events of a run. Times are nanoseconds since time 0 until they are in a row."""

    events: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    @cached_property
    def _events_table(self) -> pa.Table:
        return pa.Table.from_pylist(self.events, schema=schemas.EVENTS)

    def events_table(self) -> pa.Table:
        """Rows of schemas.EVENTS."""
        return self._events_table

    def stream(self, stream: int) -> pa.Table:
        """Return the events of one stream, as a task gets them."""
        return self._events_table.filter(pc.field("stream") == stream)

    def records_table(self, *, stream: int | None = None) -> pa.Table:
        """Rows of schemas.RECORDS."""
        chosen = [row for row in self.records if stream is None or row["stream"] == stream]
        return pa.Table.from_pylist(chosen, schema=schemas.RECORDS)


@cache
def simulate(*, returned: int = RETURNED, catch_up_batches_per_20ms: int | None = None) -> World:
    """Simulate the run, once per setting. The result must not be changed.

    catch_up_batches_per_20ms: the backlog's rate over the detour; None: at once.
    """
    world = World()
    for stream, owner in enumerate(REGIONS):
        for region in REGIONS:
            _region(world, stream, owner, region, returned, catch_up_batches_per_20ms)
    return world


def published_ns(stream: int, number: int) -> int:
    """Return when a stream's batch, counted from 0, is complete at its proxy."""
    return number * EVERY + stream * MS


def _region(world: World, stream: int, owner: str, region: str, returned: int, pace: int | None) -> None:
    last, waited = 0, 0
    for number in range(END // EVERY):
        t = published_ns(stream, number)
        first_seq = number * BATCH + 1
        if region == owner:
            _publish(world, stream, owner, first_seq, t)
            arrived = t
        else:
            t_way, source = _way(owner, region, t, returned)
            if source == DETOUR and t < SWITCHED and {owner, region} == {"r2", "r3"}:
                waited += 1
                t_way = SWITCHED + (0 if pace is None else waited // pace * EVERY)
            arrived = max(t_way, last)
            _row(world, f"{region}-proxy-0", "arrived", f"{source}-proxy-0", stream, first_seq, arrived)
            sent = arrived - hop_ns(source, region)
            _row(world, f"{source}-proxy-0", "sent", f"{region}-proxy-0", stream, first_seq, sent)
        last = arrived
        for client in (f"{region}-client-0", f"{region}-client-1"):
            _row(world, client, "arrived", f"{region}-proxy-0", stream, first_seq, arrived + 2 * LAN)
            _record(world, client, RecordKind.DELIVERED, stream, first_seq, arrived + 2 * LAN)


def _way(owner: str, region: str, t: int, returned: int) -> tuple[int, str]:
    """Return when the batch would arrive, and from which host."""
    direct = t + hop_ns(owner, region)
    if {owner, region} != {"r2", "r3"} or direct <= CUT or t >= returned:
        return direct, owner
    return t + hop_ns(owner, DETOUR) + hop_ns(DETOUR, region), DETOUR


def _publish(world: World, stream: int, owner: str, first_seq: int, t: int) -> None:
    _row(world, f"{owner}-proxy-0", "published", f"{owner}-driver-0", stream, first_seq, t)
    _record(world, f"{owner}-driver-0", RecordKind.PUBLISHED, stream, first_seq, t + 2 * LAN)


def _row(world: World, host: str, kind: str, peer: str, stream: int, first_seq: int, t: int) -> None:
    region, role, _ = host.split("-")
    world.events.append(
        {
            "host": host, "region": region, "role": role, "kind": kind, "peer": peer, "stream": stream,
            "first_seq": first_seq, "count": BATCH, "events": BATCH, "t_ns": ZERO + t,
            "bytes": BATCH * EVENT_BYTES,
        }
    )  # fmt: skip


def payload(stream: int, first_seq: int) -> bytes:
    """Return the bytes of a batch."""
    return b"".join(b"%02d%08d" % (stream, seq) for seq in range(first_seq, first_seq + BATCH))


def _record(world: World, host: str, kind: RecordKind, stream: int, first_seq: int, t: int) -> None:
    world.records.append(
        {
            "host": host, "session": 0, "position": len(world.records) + 1, "kind": int(kind),
            "stream": stream, "first_seq": first_seq, "count": BATCH, "t_ns": ZERO + t,
            "batch_crc": crc32(payload(stream, first_seq)), "running_crc": running_crc(stream, first_seq),
            "covered": BATCH,
        }
    )  # fmt: skip


@cache
def running_crc(stream: int, first_seq: int) -> int:
    """CRC-32 of a stream's bytes up to the end of a batch."""
    before = running_crc(stream, first_seq - BATCH) if first_seq > 1 else 0
    return crc32(payload(stream, first_seq), before)
