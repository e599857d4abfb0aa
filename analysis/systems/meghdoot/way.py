"""The path of one event through the space: affected zones, contacted nodes, notified subscribers (3.4).

The event is the one of an outage with the most subscribers. Its path is known from packets; in virtual time
there are none, and it is computed from the zones at its publication.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from analysis.jobs import transfers
from analysis.messages.label import address_text
from analysis.pages.report.charts.bands import bands
from analysis.pages.report.run_reader import AnalysedRun
from analysis.schemas import ENDS_COLUMNS
from analysis.systems.meghdoot.zones import Holding, ZoneHistory
from analysis.timelines.arrays import Ints
from analysis.timelines.delivery.content import ContentFiles, ContentRecords
from analysis.timelines.delivery.delivery_records import read_files
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.under_way import InFlightSpans
from experiments.records.rundir import RunDirectory
from node.core.content.content import attributes_of, event_ranges
from node.core.deliveries import RecordKind
from node.protocols.can.zones import Point
from node.protocols.meghdoot.region import NextZones, SpaceRegion, affected
from node.protocols.meghdoot.space import Space

PASSED_ON, TOLD = "EVENT", "NOTIFY"
Pair = tuple[str, str]
"""Sender and receiver."""


@dataclass(frozen=True, slots=True)
class EventPath:
    """The path of one event. zones: the affected ones at its publication. wanted: hosts that had to get it.
    got: hosts that did. told: senders and receivers of notifications; empty without packets.
    """

    stream: int
    seq: int
    t_ns: int
    says: str
    point: Point
    region: SpaceRegion
    zones: tuple[Holding, ...]
    passed_on: tuple[Pair, ...]
    told: tuple[Pair, ...]
    wanted: frozenset[str]
    got: frozenset[str]
    is_captured: bool

    @property
    def root(self) -> str | None:
        """The host with the zone of the event's point."""
        return next((each.host for each in self.zones if each.zone.contains(self.point)), None)

    @property
    def contacted(self) -> frozenset[str]:
        """The hosts that got the event for a zone, including the root."""
        first = {self.root} if self.root else set[str]()
        return frozenset(first | {each for pair in self.passed_on for each in pair})


def path_of_event(
    record: AnalysedRun, run: RunDirectory, metadata: RunMetadata, zones: ZoneHistory
) -> EventPath | None:
    """Return the path of the event with the most subscribers; None if no event had any."""
    files = ContentFiles.from_run(run, metadata, metadata.clients)
    content = files.read(metadata.clocks) if files is not None else None
    chosen = _choose(record, metadata, content) if content is not None else None
    if content is None or chosen is None:
        return None
    place, wanted = chosen
    stream, seq, t_ns = int(content.stream[place]), int(content.seq[place]), int(content.t_ns[place])
    attributes = attributes_of(record.plan.workload)
    values = content.values[:, place].tolist()
    point = Space(attributes).point(event_ranges(attributes, values))
    region = affected(point)
    holdings = [each for held in zones.at(t_ns).values() for each in held]
    touched = tuple(each for each in holdings if region.touches(each.zone))
    sent = _sent(run, stream, seq, metadata)
    named = zip(attributes, values, strict=True)
    return EventPath(
        stream,
        seq,
        t_ns,
        ", ".join(f"{each.name} {each.text(value) or 'unspecified'}" for each, value in named),
        point,
        region,
        touched,
        sent[PASSED_ON] if sent else _computed(touched, holdings, region),
        sent.get(TOLD, ()),
        frozenset(metadata.clients[client] for client in wanted),
        _got(run, metadata, stream, seq),
        bool(sent),
    )


def _choose(
    record: AnalysedRun, metadata: RunMetadata, content: ContentRecords
) -> tuple[int, list[int]] | None:
    """Return the event with the most subscribers, of the first outage if possible, and these clients."""
    outages = bands(record)[:1]
    for band in (*outages, None):
        chosen = np.ones(len(content.t_ns), np.bool_)
        if band is not None:
            until_s = record.length_s if band.end_s is None else band.end_s
            at_s = (content.t_ns - metadata.zero_ns) / 1e9
            chosen = (at_s >= (band.start_s + until_s) / 2) & (at_s < until_s)
        found = _most_wanted(content, metadata, np.flatnonzero(chosen))
        if found is not None:
            return found
    return None


def _most_wanted(
    content: ContentRecords, metadata: RunMetadata, places: Ints
) -> tuple[int, list[int]] | None:
    streams = np.unique(content.stream[places]).tolist()
    pairs = content.matched(metadata.declared.contract, streams, InFlightSpans.from_metadata(metadata))
    wanted: dict[tuple[int, int], set[int]] = {}
    for client, stream, seq in zip(pairs.client[pairs.must].tolist(), pairs.stream[pairs.must].tolist(),
                                   pairs.seq[pairs.must].tolist(), strict=True):  # fmt: skip
        wanted.setdefault((stream, seq), set()).add(client)
    names = [(int(content.stream[place]), int(content.seq[place])) for place in places.tolist()]
    counted = [len(wanted.get(name, ())) for name in names]
    if not any(counted):
        return None
    best = counted.index(max(counted))
    return int(places[best]), sorted(wanted[names[best]])


def _sent(run: RunDirectory, stream: int, seq: int, metadata: RunMetadata) -> dict[str, tuple[Pair, ...]]:
    """Return senders and receivers of the event by message type; empty without packets."""
    if not run.table("transfers").exists():
        return {}
    chosen = (pc.field("stream") == stream) & (pc.field("first_seq") == seq)
    chosen &= pc.field("type").isin([PASSED_ON, TOLD])
    columns = ("type", "sender", "receiver", *ENDS_COLUMNS)
    rows = transfers.read(run, columns=columns, chosen=chosen).to_pylist()
    return pairs_of(rows, metadata.host_at) if rows else {}


def pairs_of(rows: Iterable[Mapping[str, Any]], host_at: Mapping[str, str]) -> dict[str, tuple[Pair, ...]]:
    """Return the original sender and final receiver of each message, by message type, without relays."""
    found: dict[str, dict[Pair, None]] = {PASSED_ON: {}, TOLD: {}}
    for row in rows:
        ends = [
            row[seen] if row[end] is None else host_at.get(address_text(row[end]))
            for seen, end in zip(("sender", "receiver"), ENDS_COLUMNS, strict=True)
        ]
        if None not in ends and ends[0] != ends[1]:
            found[row["type"]][str(ends[0]), str(ends[1])] = None
    return {kind: tuple(pairs) for kind, pairs in found.items()}


def _computed(touched: Sequence[Holding], all_of: Sequence[Holding], region: SpaceRegion) -> tuple[Pair, ...]:
    """Compute from zones which host had to forward the event to which."""
    found: dict[Pair, None] = {}
    for each in touched:
        around = [other for other in all_of if each.zone.adjacent(other.zone)]
        if around:
            low, high = (
                np.array(edges)
                for edges in zip(*((one.zone.low, one.zone.high) for one in around), strict=True)
            )
            for row in NextZones(each.zone, low, high).children(region):
                if around[row].host != each.host:
                    found[each.host, around[row].host] = None
    return tuple(found)


def _got(run: RunDirectory, metadata: RunMetadata, stream: int, seq: int) -> frozenset[str]:
    files = [(name, run.host_deliveries(name)) for name in metadata.clients]
    rows = read_files(files, [stream], clocks=metadata.clocks)
    end = pc.add(rows.column("first_seq"), rows.column("count"))
    mine = pc.and_(
        pc.equal(rows.column("kind"), int(RecordKind.DELIVERED)),
        pc.and_(pc.less_equal(rows.column("first_seq"), seq), pc.greater(end, seq)),
    )
    return frozenset(rows.filter(mine).column("host").to_pylist())
