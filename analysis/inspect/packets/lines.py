"""Messages as text: one line each, columns aligned, problems marked by a word and a colour.

A line contains the time when the message was first seen (seconds since time 0 of the run), sender and
receiver, the delay from its first byte at the sender until it was complete at the receiver, its bytes, and
its content. If sender and receiver are on different machines, the delay is followed by the error bound of
their clocks. Faults appear between the messages, at the time when they took effect.

Retransmitted segments have their own lines. Programs get the rows themselves, as objects.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from analysis.capture.time_range import TimeRange
from analysis.inspect.packets.dissect import dissect
from analysis.messages.label import LABEL_COLUMNS, label
from analysis.schemas import ARRIVED, LOST
from analysis.timelines.recovering.run_faults import RunFault
from analysis.timelines.run_metadata import RunMetadata
from experiments.files.sanitize import printable
from node.core.message_layout import Codec

if TYPE_CHECKING:
    from analysis.inspect.packets.raw import MessageBytes
    from analysis.inspect.packets.retransmissions import Retransmission

Row = Mapping[str, Any]
Paint = Callable[[str, str], str]
"""Function from text and colour to the text shown; without a terminal it returns the text."""

TIME, DELAY, BYTES = 12, 9, 7  # widths
BAR = 7  # width of an error bound, if there are several clocks
COLUMNS = (
    "t_ns", "sender", "receiver", "src", "sport", "dst", "dport", "length", "t_sent_ns", "t_arrived_ns",
    "t_complete_ns", "fate", "retransmitted", *LABEL_COLUMNS,
)  # fmt: skip
LABELS_MAX = 2
_NTH, _OFFSET = 3, 12  # widths


def plain(text: str, _: str) -> str:
    """Return the text without colour."""
    return text


class Lines:
    """Formats lines for one run."""

    def __init__(self, metadata: RunMetadata, times: TimeRange, paint: Paint = plain) -> None:
        """Prepare lines. times: range of the faults to show."""
        self._zero_ns = metadata.zero_ns
        self._facts = metadata
        self.system = metadata.declared.name
        self._delay = DELAY + (BAR if metadata.clocks.by_machine else 0)
        self._faults = [fault for fault in metadata.applied_faults if times.meets(fault.t_ns, fault.t_ns)]
        self._paint = paint
        self.names = max((len(name) for name in metadata.hosts), default=4)

    def header(self) -> str:
        """Return the names and units of the columns."""
        ends = f"{'from':<{self.names}}    {'to':<{self.names}}"
        return self.dim(
            f"{'time s':>{TIME}}  {ends}  {'delay ms':>{self._delay}}  {'bytes':>{BYTES}}  message"
        )

    def label(self, row: Row) -> str:
        """Return the content of a message as text."""
        return label(row, self.system, self._facts.host_at)

    def object(self, row: Row) -> dict[str, Any]:
        """Return a row of TRANSFERS for programs: its columns and its label; keys are hexadecimal."""
        columns = {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
        return columns | {"label": self.label(row)}

    def message(self, row: Row) -> str:
        """Return the line of a row of TRANSFERS."""
        delay = _delay_ms(row)
        took = row["fate"] if row["fate"] != ARRIVED else "-" if delay is None else f"{delay:.3f}"
        took += self._bar(row)
        ends = f"{end_name(row, 'sender'):<{self.names}} -> {end_name(row, 'receiver'):<{self.names}}"
        text = f"{ends}  {took:>{self._delay}}  {row['length']:>{BYTES}}  {self.label(row)}"
        marks = ["arrived in part"] if row["fate"] == LOST and row["t_arrived_ns"] is not None else []
        marks += ["retransmitted"] if row["retransmitted"] else []
        line = printable(f"{self.time(row['t_ns'])}  {text}{''.join(f'  ({mark})' for mark in marks)}")
        colour = "red" if row["fate"] == LOST else "yellow" if row["retransmitted"] else ""
        return self._paint(line, colour) if colour else line

    def _bar(self, row: Row) -> str:
        """Return the error bound of the delay if two machines' clocks measured it, else ""."""
        if _delay_ms(row) is None:
            return ""
        error_ns = self._facts.clocks.error_bound_ns(row["sender"], row["receiver"], row["t_ns"])
        return "" if error_ns is None else f" ±{error_ns / 1e6:.3f}"

    def faults_until(self, t_ns: int | None) -> Iterator[str]:
        """Yield the faults that took effect up to this time, or all. Each is yielded once."""
        while self._faults and (t_ns is None or self._faults[0].t_ns <= t_ns):
            yield self._fault(self._faults.pop(0))

    def _fault(self, fault: RunFault) -> str:
        named = "" if fault.name == fault.kind else f" ({fault.name})"
        text = printable(f"{fault.kind} {fault.target}{named}")
        return self._paint(f"{self.time(fault.t_ns)}  ---- {text} ----", "cyan")

    def dim(self, text: str) -> str:
        """Return text in a dim colour."""
        return self._paint(text, "bright_black")

    def time(self, t_ns: int) -> str:
        """Return seconds since time 0, to the microsecond."""
        return f"{(t_ns - self._zero_ns) / 1e9:>{TIME}.6f}"


def _delay_ms(row: Row) -> float | None:
    """Return the time from the first byte at the sender to complete arrival.

    Returns None if one of them was not seen.
    """
    if row["t_sent_ns"] is None or row["t_complete_ns"] is None:
        return None
    return float(row["t_complete_ns"] - row["t_sent_ns"]) / 1e6


def end_name(row: Row, end: str) -> str:
    """Return a host's name, or address and port if it is not a host of the run."""
    address, port = ("src", "sport") if end == "sender" else ("dst", "dport")
    return row[end] or f"{row[address]}:{row[port]}"


RAW_COLUMN = 8  # bytes per line
RAW_BYTES_MAX = 64  # of one field: the payload of a batch has thousands of bytes
_RAW_INDENT = " " * TIME + "    "


def raw_lines(raw: "MessageBytes | None", codec: Codec) -> Iterator[str]:
    """Yield the lines of a message's bytes: offset, bytes, and their field with value and unit."""
    if raw is None:
        yield f"{_RAW_INDENT}no capture has its bytes"
        return
    plural = "s" if raw.packets != 1 else ""
    yield f"{_RAW_INDENT}{printable(raw.capture)}, in {raw.packets} packet{plural}"
    for part in dissect(raw.content, codec):
        size = len(part.content.data)
        value = "?" if part.value is None else str(part.value)
        text = printable(" ".join(filter(None, (f"{part.name:<20}", value, part.unit, part.meaning))))
        for first in range(0, min(size, RAW_BYTES_MAX), RAW_COLUMN):
            octets = " ".join(part.octets(first, first + RAW_COLUMN))
            yield f"{_RAW_INDENT}{part.offset + first:>7}  {octets:<{3 * RAW_COLUMN}} {text}".rstrip()
            text = ""
        if size > RAW_BYTES_MAX:
            yield f"{_RAW_INDENT}{'':7}  … {size - RAW_BYTES_MAX:,} bytes more (--format json has them)"


def again_header(lines: Lines) -> str:
    """Return the names and units of the columns for retransmissions."""
    ends = f"{'seen at':<{_places(lines)}}  {'from':<{lines.names}}    {'to':<{lines.names}}"
    return lines.dim(
        f"{'time s':>{TIME}}  {'first s':>{TIME}}  {'after ms':>{DELAY}}  {'nth':>{_NTH}}  {ends}"
        f"  {'from byte':>{_OFFSET}}  {'bytes':>{BYTES}}  carries"
    )


def again_line(again: "Retransmission", lines: Lines) -> str:
    """Return the line of a retransmitted segment."""
    row, places = again.messages[0], ", ".join(again.hosts)
    carries = ", ".join(lines.label(message) for message in again.messages[:LABELS_MAX])
    more = len(again.messages) - LABELS_MAX
    return printable(
        f"{lines.time(again.t_ns)}  {lines.time(again.first_ns)}"
        f"  {(again.t_ns - again.first_ns) / 1e6:>{DELAY}.3f}  {again.nth:>{_NTH}}"
        f"  {places:<{_places(lines)}}  {end_name(row, 'sender'):<{lines.names}}"
        f" -> {end_name(row, 'receiver'):<{lines.names}}  {again.stream_offset:>{_OFFSET}}"
        f"  {again.length:>{BYTES}}  {carries}{f' and {more} more' if more > 0 else ''}"
    )


def _places(lines: Lines) -> int:
    return 2 * lines.names + len(", ")


def segment(again: "Retransmission") -> tuple[Any, ...]:
    """Return the identity of a segment: its connection and offset."""
    return (again.connection, again.stream_offset)


def raw_object(raw: "MessageBytes | None", codec: Codec) -> dict[str, Any]:
    """Return the bytes of a message for programs: the capture, its packets, and each field with its bytes."""
    if raw is None:
        return {"capture": None, "packets": 0, "fields": []}
    fields = [
        {
            "offset": part.offset,
            "bytes": "".join(part.octets(0, len(part.content.data))),
            "name": part.name,
            "value": part.value,
            "unit": part.unit,
            "means": part.meaning,
        }
        for part in dissect(raw.content, codec)
    ]
    return {"capture": raw.capture, "packets": raw.packets, "fields": fields}


def again_object(again: "Retransmission", lines: Lines) -> dict[str, Any]:
    """Return a retransmission for programs, with the labels of the messages that it carries."""
    row = again.messages[0]
    ends = ("sender", "receiver", "src", "sport", "dst", "dport", "connection")
    return {
        "t_ns": again.t_ns,
        "first_ns": again.first_ns,
        "nth": again.nth,
        "hosts": list(again.hosts),
        **{name: row[name] for name in ends},
        "stream_offset": again.stream_offset,
        "length": again.length,
        "messages": [lines.label(message) for message in again.messages],
    }
