"""Turns rows of TRANSFERS into arrows, one per message or per run of similar messages between two hosts.

A run ends when the fate of its messages changes, after a pause longer than a given part of the picture, and,
for events, when sequence numbers are not consecutive, unless there are too many such runs. Its label has the
joint range.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from analysis.pages.diagram.ranks import HEARTBEAT, Ranks
from analysis.pages.diagram.scene import Arrow, Flight

Row = Mapping[str, Any]
Pair = tuple[str, str]

_TIMES = "\u00d7"
PAUSES = 8  # a pause of this fraction of the picture splits a run in two
SHORTEST_RUN = 3  # two messages stay separate
_UNKNOWN_S = 0.02  # used if no message between two regions arrived


class TypicalDelays:
    """Median delays between hosts, used for messages that never arrived."""

    def __init__(self, rows: Iterable[Row]) -> None:
        """Compute the medians. rows: every transfer in the time window, not only those drawn."""
        found: defaultdict[Pair, list[int]] = defaultdict(list)
        for row in rows:
            if row["t_complete_ns"] is not None and row["t_sent_ns"] is not None:
                found[row["sender"], row["receiver"]].append(row["t_complete_ns"] - row["t_sent_ns"])
        self._usual = {pair: median(taken) / 1e9 for pair, taken in found.items()}
        self._any = median(self._usual.values()) if self._usual else _UNKNOWN_S

    def between(self, sender: str, receiver: str) -> float:
        """Return the typical delay from one host to the other, in seconds.

        If no message arrived in this direction, return that of the reverse direction or of any pair.
        """
        return self._usual.get((sender, receiver), self._usual.get((receiver, sender), self._any))


@dataclass(frozen=True, slots=True)
class Merging:
    """The kinds (see `ranks.what`) whose runs become one arrow. loosely: ignore gaps in event numbers."""

    ranks: Ranks
    kinds: frozenset[str] = frozenset()
    loosely: bool = False


def arrows(
    rows: Sequence[Row], zero_ns: int, span_s: float, delays: TypicalDelays, merging: Merging
) -> list[Arrow]:
    """Return the arrows of these rows (ascending in time), by send time. span_s: length of the picture."""
    runs: dict[tuple[Any, ...], list[list[Row]]] = defaultdict(list)
    chosen: list[list[Row]] = []
    for row in rows:
        kind = merging.ranks.what(row)
        if kind not in merging.kinds:
            chosen.append([row])
            continue
        open_runs = runs[row["sender"], row["receiver"], kind, row["stream"], row["kind"], row["fate"]]
        if open_runs and _follows(open_runs[-1][-1], row, span_s / PAUSES, merging):
            open_runs[-1].append(row)
        else:
            open_runs.append([row])
    for found in (run for group in runs.values() for run in group):
        chosen += [found] if len(found) >= SHORTEST_RUN else [[row] for row in found]
    made = [_arrow(run, zero_ns, delays, merging.ranks) for run in chosen]
    return sorted(made, key=lambda arrow: (arrow.sent_s, arrow.sender, arrow.receiver, arrow.label))


def _follows(before: Row, row: Row, pause_s: float, merging: Merging) -> bool:
    if row["t_sent_ns"] - before["t_sent_ns"] > pause_s * 1e9:
        return False
    if (
        merging.loosely
        or row["type"] not in merging.ranks.events
        or None in (before["covered"], before["first_seq"], row["first_seq"])
    ):
        return True
    return bool(before["first_seq"] + before["covered"] == row["first_seq"])


def _arrow(run: Sequence[Row], zero_ns: int, delays: TypicalDelays, ranks: Ranks) -> Arrow:
    first = run[0]

    def since(t_ns: int | None) -> float | None:
        return None if t_ns is None else (t_ns - zero_ns) / 1e9

    flights = ((since(row["t_sent_ns"]), since(row["t_complete_ns"])) for row in run)
    return Arrow(
        type=first["type"],
        sender=first["sender"],
        receiver=first["receiver"],
        fate=first["fate"],
        label=_label(run, ranks),
        flights=tuple(Flight(sent_s, end_s) for sent_s, end_s in flights if sent_s is not None),
        lasting_s=delays.between(first["sender"], first["receiver"]),
        retransmitted=sum(bool(row["retransmitted"]) for row in run),
    )


def _label(run: Sequence[Row], ranks: Ranks) -> str:
    first = run[0]
    if len(run) == 1:
        return ranks.label(first)
    if first["type"] not in ranks.events:
        stream = "" if first["stream"] is None else f" s{first['stream']}"
        return (
            f"{len(run)} {_TIMES} {HEARTBEAT if ranks.what(first) == HEARTBEAT else first['type'] + stream}"
        )
    first_seq = min(row["first_seq"] for row in run)
    numbers = max(row["first_seq"] + (row["covered"] or row["count"] or 1) for row in run) - first_seq
    count = numbers if first["type"] == ranks.events[0] else sum(row["count"] or 1 for row in run)
    joint = {**first, "first_seq": first_seq, "count": count, "covered": numbers}
    return f"{len(run)} {_TIMES} {ranks.label(joint)}"
