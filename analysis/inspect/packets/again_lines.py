"""Segments that were sent again, as lines for people and as objects for programs."""

from typing import Any

from analysis.inspect.packets.lines import BYTES, DELAY, TIME, Lines, end_name
from analysis.inspect.packets.objects import CONNECTION, seconds
from analysis.inspect.packets.retransmissions import Again
from analysis.messages.label import label
from analysis.timelines.facts import Facts

LABELS_MAX = 2
_NTH, _OFFSET = 3, 12  # widths

KEYS = {
    "t": "s since time 0: when the segment was seen again, by the first of `hosts`",
    "t_ns": "the same on the hosts' clock, ns since 1970",
    "first": "s: when any of its bytes was seen first",
    "after_ms": "between the two",
    "nth": "2 for the second time that its bytes were seen",
    "hosts": "whose captures saw it again: the sender, the receiver or both",
    "from": "host",
    "to": "host",
    **CONNECTION,
    "bytes": "of its payload",
    "messages": "what it carries bytes of: label, type, stream, stream_offset, fate",
}


def header(lines: Lines) -> str:
    """Names and units of the columns."""
    ends = f"{'seen at':<{_places(lines)}}  {'from':<{lines.names}}    {'to':<{lines.names}}"
    return lines.dim(
        f"{'time s':>{TIME}}  {'first s':>{TIME}}  {'after ms':>{DELAY}}  {'nth':>{_NTH}}  {ends}"
        f"  {'from byte':>{_OFFSET}}  {'bytes':>{BYTES}}  carries"
    )


def line(again: Again, lines: Lines) -> str:
    """One segment."""
    row, places = again.messages[0], ", ".join(again.hosts)
    carries = ", ".join(label(message, lines.system) for message in again.messages[:LABELS_MAX])
    more = len(again.messages) - LABELS_MAX
    return (
        f"{lines.time(again.t_ns)}  {lines.time(again.first_ns)}"
        f"  {(again.t_ns - again.first_ns) / 1e6:>{DELAY}.3f}  {again.nth:>{_NTH}}"
        f"  {places:<{_places(lines)}}  {end_name(row, 'sender'):<{lines.names}}"
        f" -> {end_name(row, 'receiver'):<{lines.names}}  {again.stream_offset:>{_OFFSET}}"
        f"  {again.length:>{BYTES}}  {carries}{f' and {more} more' if more > 0 else ''}"
    )


def _places(lines: Lines) -> int:
    return 2 * lines.names + len(", ")


def segment(again: Again) -> tuple[Any, ...]:
    """What tells a segment from others."""
    return (again.connection, again.stream_offset)


def describe(again: Again, facts: Facts) -> dict[str, Any]:
    """The same as an object with KEYS."""
    row = again.messages[0]
    told = ("type", "stream", "stream_offset", "fate")
    return {
        "t": seconds(again.t_ns, facts),
        "t_ns": again.t_ns,
        "first": seconds(again.first_ns, facts),
        "after_ms": (again.t_ns - again.first_ns) / 1e6,
        "nth": again.nth,
        "hosts": list(again.hosts),
        "from": row["sender"],
        "to": row["receiver"],
        **{name: row[name] for name in ("src", "sport", "dst", "dport", "connection")},
        "stream_offset": again.stream_offset,
        "bytes": again.length,
        "messages": [
            {"label": label(message, facts.declared.name)} | {name: message[name] for name in told}
            for message in again.messages
        ],
    }
