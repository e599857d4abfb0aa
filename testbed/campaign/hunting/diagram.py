"""The messages around a violation as text: one column per process, one line per message.

The columns are the affected processes, the disturbed ones, and those with which they exchange most messages.
Kinds of messages of steady traffic are left out. If too many messages remain, the diagram keeps those closest
to the beginnings and ends of disturbances.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from experiments.hunting.case import HuntCase

LINES_MAX = 120
COLUMNS_MAX = 7
WIDTH = 16
AROUND_US = 300_000
"""Time shown before the first and after the last disturbance, in microseconds."""
STEADY = 40
"""A kind with more messages than this in the shown time is steady traffic."""


def kept_us(case: HuntCase) -> tuple[int, int]:
    """Return the time range of messages shown for a case, in microseconds since time 0."""
    first = min((each.at_us for each in case.disturbances), default=0)
    last = max((each.end_us for each in case.disturbances), default=first + AROUND_US)
    return first - AROUND_US, last + 2 * AROUND_US


def diagram(messages: Sequence[Mapping[str, Any]], case: HuntCase, concerned: Sequence[str]) -> str:
    """Return the messages of a time range as text. concerned: the processes that the violation affects."""
    chosen = _columns(messages, case, concerned)
    among = [each for each in messages if each["source"] in chosen and each["target"] in chosen]
    often = Counter(each["kind"] for each in among)
    shown = [each for each in among if often[each["kind"]] <= STEADY] or among
    left_out = sorted(kind for kind, count in often.items() if count > STEADY)
    edges = [edge for each in case.disturbances for edge in _edges(each)]
    events: list[tuple[int, str]] = []
    after = 0
    for place in _nearest(shown, [at_us for at_us, _ in edges]):
        at_us = shown[place]["time_us"]
        events += [(at_us, f"… {place - after} more")] if place > after else []
        events.append((at_us, _arrow(shown[place], chosen)))
        after = place + 1
    lines = ["seconds   " + "".join(name[-WIDTH + 1 :].center(WIDTH) for name in chosen)]
    events += [(at_us, f"-- {text}") for at_us, text in edges]
    lines += [f"{at_us / 1e6:8.4f}  {text}".rstrip() for at_us, text in sorted(events, key=itemgetter(0))]
    if after < len(shown):
        lines.append(f"          … {len(shown) - after} more")
    if left_out and shown is not among:
        lines.append(f"left out, as there are many: {', '.join(left_out)}")
    return "\n".join(lines) + "\n"


def _nearest(messages: Sequence[Mapping[str, Any]], edges: Sequence[int]) -> list[int]:
    """Return the indexes of the messages that are nearest to any edge, in order."""

    def away_us(place: int) -> int:
        return min((abs(messages[place]["time_us"] - edge) for edge in edges), default=0)

    return sorted(sorted(range(len(messages)), key=away_us)[:LINES_MAX])


def _edges(each: Any) -> list[tuple[int, str]]:
    what = f"{each.kind} of {', '.join(each.target)}"
    ends = [(each.end_us, f"end of {what}")] if each.for_us else []
    return [(each.at_us, what), *ends]


def _columns(messages: Sequence[Mapping[str, Any]], case: HuntCase, concerned: Sequence[str]) -> list[str]:
    disturbed = [name for each in case.disturbances for name in (*each.target, *each.others) if "/" in name]
    first = list(dict.fromkeys([*concerned[:2], *disturbed]))[: COLUMNS_MAX - 2]
    spoke: Counter[str] = Counter()
    for each in messages:
        if each["source"] in first:
            spoke[each["target"]] += 1
        if each["target"] in first or not first:
            spoke[each["source"]] += 1
    others = [name for name, _ in spoke.most_common() if name not in first]
    return sorted([*first, *others[: COLUMNS_MAX - len(first)]])


def _arrow(message: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Return `    o-----Kind---->    ` from one column's middle to another's."""
    source, target = (columns.index(message[name]) for name in ("source", "target"))
    low, high = sorted((source, target))
    begin, end = low * WIDTH + WIDTH // 2, high * WIDTH + WIDTH // 2
    if source == target:
        return " " * begin + f"o {message['kind']} to itself"
    inside = f" {message['kind']} ".center(end - begin - 1, "-")
    ends = ("o", ">") if source < target else ("<", "o")
    return " " * begin + ends[0] + inside + ends[1]
