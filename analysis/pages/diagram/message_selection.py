"""Selects the messages of a time window that are drawn: the requested or the most informative ones.

Until the picture is readable, these steps run in order: runs of events become one arrow; routine messages
within regions are left out; the least relevant hosts are left out if there are too many; runs of any kind
become one arrow; kinds of messages are left out, the least informative first
(`analysis.pages.diagram.ranks`); the last messages are left out. Everything left out is counted and
reported.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from typing import Any

from analysis.pages.diagram.merging import Merging, Row, TypicalDelays, arrows
from analysis.pages.diagram.ranks import Ranks
from analysis.pages.diagram.scene import Arrow
from analysis.pages.report.formatting import count_of, number
from analysis.schemas import LOST

ARROWS_MAX = 72  # still readable on a screen
ARROWS_MAX_OF_PARTS = 24  # if only participants are shown, as few as in the paper's figure
LIFELINES_MAX = 10


_ARROWS, _LIFELINES = "arrows", "lifelines"  # limits that a picture may exceed


class ExtraMessages(Enum):
    """Rare messages that are shown in addition to those of a stream."""

    NOTHING = auto()
    WHAT_IS_OF_NONE = auto()  # messages without a stream: greetings, configurations
    ALL_CHANGES = auto()  # also changes of other streams


@dataclass(frozen=True, slots=True)
class DiagramQuery:
    """The request for a diagram; empty collections and None do not restrict it.

    hosts and regions: if several are given, both ends of a message must be among them; if one is given, one
    end. types: as in TRANSFERS, in capitals. beside: messages shown besides a stream. parts_only: only hosts
    that took part in the changes, and those of their regions that exchanged events with them. victim: a host
    that always takes part.
    """

    hosts: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    stream: int | None = None
    beside: ExtraMessages = ExtraMessages.NOTHING
    parts_only: bool = False
    victim: str | None = None


@dataclass(slots=True)
class MessageSelection:
    """The messages that are drawn, and the number of those that are not, by reason."""

    arrows: list[Arrow]
    left_out: tuple[str, ...]


@dataclass(slots=True)
class _Picture:
    rows: list[Row]
    ranks: Ranks
    merging: Merging
    left_out: list[str] = field(default_factory=list)
    kinds_left_out: dict[str, int] = field(default_factory=dict)

    @property
    def lacks(self) -> tuple[str, ...]:
        """Descriptions of the messages left out."""
        if not self.kinds_left_out:
            return tuple(self.left_out)
        each = ", ".join(f"{kind} {number(count)}" for kind, count in self.kinds_left_out.items())
        kinds = _counted(sum(self.kinds_left_out.values()), f"of less informative types ({each})")
        return (*self.left_out, kinds)


_Step = Callable[[_Picture], None]


def select_messages(  # noqa: PLR0917 (independent parameters)
    rows: Iterable[Row],
    wanted: DiagramQuery,
    zero_ns: int,
    span_s: float,
    region_of: Mapping[str, str],
    ranks: Ranks,
) -> MessageSelection:
    """Return the messages to draw from these rows of TRANSFERS, which ascend in time.

    region_of: host -> region. Messages from or to hosts outside the run have no lifeline and are not drawn.
    """
    seen = list(rows)
    known = [row for row in seen if row["sender"] in region_of and row["receiver"] in region_of]
    started = [row for row in known if row["t_sent_ns"] is not None]
    requested = [
        _with_stream_counters(row, wanted, ranks)
        for row in started
        if _is_requested(row, wanted, region_of, ranks)
    ]
    picture = _Picture(requested, ranks, Merging(ranks))
    if len(started) < len(seen):
        picture.left_out.append(_counted(len(seen) - len(started), "whose start was not captured"))
    delays = TypicalDelays(started)
    if wanted.parts_only:
        _leave_bystanders(picture, wanted, region_of)

    def merged_arrows() -> list[Arrow]:
        return arrows(picture.rows, zero_ns, span_s, delays, picture.merging)

    few = wanted.parts_only and wanted.beside is not ExtraMessages.ALL_CHANGES
    most = ARROWS_MAX_OF_PARTS if few else ARROWS_MAX
    found = merged_arrows()
    for remedied, step in _steps(wanted, region_of, ranks):
        crowded = {_ARROWS} if len(found) > most else set()
        crowded |= {_LIFELINES} if len(_ends(picture.rows)) > LIFELINES_MAX else set()
        if crowded & remedied:
            step(picture)
            found = merged_arrows()
    kept = sorted(sorted(found, key=partial(_importance, ranks=ranks))[:most], key=lambda arrow: arrow.sent_s)
    if len(kept) < len(found):
        without = sum(len(arrow.flights) for arrow in found) - sum(len(arrow.flights) for arrow in kept)
        picture.left_out.append(_counted(without, "without room in the picture"))
    return MessageSelection(kept, picture.lacks)


def _is_requested(row: Row, wanted: DiagramQuery, region_of: Mapping[str, str], ranks: Ranks) -> bool:
    ends = (row["sender"], row["receiver"])
    regions = tuple(region_of[end] for end in ends)
    types = {row["type"], *(row.get("within") or "").split()}
    return (
        _within(ends, wanted.hosts)
        and _within(regions, wanted.regions)
        and (not wanted.types or not wanted.types.isdisjoint(types))
        and (wanted.stream is None or _of_stream(row, wanted, ranks))
    )


def _within(ends: tuple[str, ...], among: Collection[str]) -> bool:
    many = len(among) > 1
    return not among or (all if many else any)(end in among for end in ends)


def _of_stream(row: Row, wanted: DiagramQuery, ranks: Ranks) -> bool:
    seldom = ranks.what(row) not in ranks.ordinary
    if row["stream"] is not None:
        return bool(row["stream"] == wanted.stream) or (seldom and wanted.beside is ExtraMessages.ALL_CHANGES)
    if row.get("advertised") and not (seldom and wanted.beside is not ExtraMessages.NOTHING):
        return any(counter["stream"] == wanted.stream for counter in row["advertised"])
    return seldom and wanted.beside is not ExtraMessages.NOTHING


def _with_stream_counters(row: Row, wanted: DiagramQuery, ranks: Ranks) -> Row:
    """Keep only the counters of the requested stream, so that the label shows only these."""
    if wanted.stream is None or ranks.what(row) not in ranks.ordinary or not row.get("advertised"):
        return row
    return {**row, "advertised": [each for each in row["advertised"] if each["stream"] == wanted.stream]}


def _steps(wanted: DiagramQuery, region_of: Mapping[str, str], ranks: Ranks) -> list[tuple[set[str], _Step]]:
    """Return the steps that reduce a picture, the mildest first, each with the limits it helps to meet.

    Messages requested by type or place stay.
    """
    kinds = [] if wanted.types else [partial(_leave_kind, kind=kind) for kind in ranks.leaving_first]
    within = not (wanted.hosts or wanted.parts_only or len(wanted.regions) == 1)
    return [
        ({_ARROWS}, partial(_merge, kinds=ranks.events)),
        *([({_ARROWS}, partial(_leave_regions, region_of=region_of))] if within else []),
        *(({_ARROWS, _LIFELINES}, step) for step in kinds[:1]),
        *([] if wanted.hosts else [({_LIFELINES}, _leave_hosts)]),
        *([] if wanted.parts_only else [({_ARROWS}, partial(_merge, kinds=ranks.ordinary))]),
        *(({_ARROWS}, step) for step in kinds[1:]),
        ({_ARROWS}, _merge_loosely),
    ]


def _leave_bystanders(picture: _Picture, wanted: DiagramQuery, region_of: Mapping[str, str]) -> None:
    """Keep only hosts that took part, and the peers of their events.

    A host took part if it sent or received a change of a stream, or one of its messages was lost.
    """
    events = [
        row for row in picture.rows if row["type"] in picture.ranks.events and not _inside(row, region_of)
    ]
    all_count = wanted.beside is ExtraMessages.ALL_CHANGES
    changed = [
        row
        for row in picture.rows
        if picture.ranks.what(row) not in picture.ranks.ordinary and (all_count or row["stream"] is not None)
    ]
    parts = {wanted.victim} if wanted.victim else set()
    parts |= _ends([*changed, *(row for row in events if row["fate"] == LOST)])
    regions = {region_of[host] for host in parts}
    parts |= {
        end
        for row in events
        if parts & _ends([row])
        for end in (row["sender"], row["receiver"])
        if region_of[end] in regions
    }
    _leave(picture, lambda row: not _ends([row]) <= parts, "of hosts that took no part")


def _merge(picture: _Picture, kinds: Collection[str]) -> None:
    picture.merging = replace(picture.merging, kinds=picture.merging.kinds | frozenset(kinds))


def _merge_loosely(picture: _Picture) -> None:
    picture.merging = replace(picture.merging, loosely=True)


def _leave(picture: _Picture, goes: Callable[[Row], bool], reason: str) -> None:
    count = _take_out(picture, goes)
    if count:
        picture.left_out.append(_counted(count, reason))


def _take_out(picture: _Picture, goes: Callable[[Row], bool]) -> int:
    """Remove matching rows unless that removes all. Returns the number removed."""
    kept = [row for row in picture.rows if not goes(row)]
    if not kept:
        return 0
    count = len(picture.rows) - len(kept)
    picture.rows = kept
    return count


def _leave_regions(picture: _Picture, region_of: Mapping[str, str]) -> None:
    def within(row: Row) -> bool:
        return picture.ranks.what(row) in picture.ranks.ordinary and _inside(row, region_of)

    _leave(picture, within, "within regions")


def _leave_kind(picture: _Picture, kind: str) -> None:
    count = _take_out(picture, lambda row: picture.ranks.what(row) == kind)
    if count:
        picture.kinds_left_out[kind] = count


def _leave_hosts(picture: _Picture) -> None:
    """Leave out the hosts with the least informative messages.

    One subscription outweighs any number of events.
    """
    weights: Counter[str] = Counter()
    ranks = picture.ranks
    seldom = Counter(ranks.what(row) for row in picture.rows)
    for row in picture.rows:
        kind = ranks.what(row)
        for end in (row["sender"], row["receiver"]):
            weights[end] += 10**6 * (kind not in ranks.ordinary) // seldom[kind] + ranks.rank(kind)
    kept = {host for host, _ in sorted(weights.items(), key=lambda each: (-each[1], each[0]))[:LIFELINES_MAX]}
    _leave(
        picture,
        lambda row: row["sender"] not in kept or row["receiver"] not in kept,
        f"of {count_of(len(weights) - len(kept), 'other host')}",
    )


def _importance(arrow: Arrow, ranks: Ranks) -> tuple[Any, ...]:
    """Return the sort key of an arrow: the most informative first, then the earliest."""
    return (-ranks.rank(arrow.type), arrow.fate != LOST, arrow.sent_s)


def _ends(rows: Iterable[Row]) -> set[str]:
    return {end for row in rows for end in (row["sender"], row["receiver"])}


def _inside(row: Row, region_of: Mapping[str, str]) -> bool:
    return region_of[row["sender"]] == region_of[row["receiver"]]


def _counted(count: int, reason: str) -> str:
    return f"{number(count)} {'message' if count == 1 else 'messages'} {reason}"
