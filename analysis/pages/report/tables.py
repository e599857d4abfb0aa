"""Tables as plain data, drawn by one macro of the page: cells with text and sort key.

A table is declared as columns: each has a title, a help text, and a function from a row to a cell. The
builders here only lay out the contents of run.json and summary.json; fidelity, recovery, convergence and
backlog have modules of their own.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.capture.pcap.files.compressed import capture_name
from analysis.pages.report.charts.bands import fault_label
from analysis.pages.report.formatting import EN_DASH, NOT_MEASURED, number, precise_seconds, seconds
from analysis.pages.report.run_reader import AnalysedRun, Row
from experiments.planned.change_text import change_values
from experiments.records.observations import ProcessRecord, RoundTripProbe, ThrottleRecord
from topologies.quantities import FRACTION, SIZE, Quantity

PROCESSES_SHOWN = 500
ROWS_MAX = 400  # of streams and clients, the most affected first; there may be thousands


@dataclass(frozen=True, slots=True)
class TableCell:
    """A table cell. `sort` orders the column; None (not measured) goes last. `status` is "", "good" or "bad".

    `below` is small text under the main text; `help` is a tooltip.
    """

    text: str
    sort: float | str | None = None
    status: str = ""
    below: str = ""
    help: str = ""


def _always(_: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Column:
    """A column: heading, cell of a row, right alignment, tooltip, and which rows need it.

    Columns that no row needs are left out.
    """

    title: str
    cell: Callable[[Any], TableCell]
    numeric: bool = False
    help: str = ""
    needed: Callable[[Any], bool] = _always


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table that the page draws as sortable."""

    key: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[TableCell, ...], ...]


def text_cell(text: Any, status: str = "") -> TableCell:
    """Return a cell of text, sorted by its text."""
    shown = "" if text is None else str(text)
    return TableCell(shown, shown.lower(), status)


def figure(text: str, value: float | None, status: str = "") -> TableCell:
    """Return a cell with a quantity, sorted by its value; a dash if not measured."""
    return TableCell(EN_DASH if value is None else text, value, status)


def label(title: str, of: str | Callable[[Any], Any], help: str = "") -> Column:  # noqa: A002 - as in HTML
    """Return a column of text. of: the name of a row's field, or a function of the row."""
    return Column(title, lambda row: text_cell(_value(row, of)), help=help)


def quantity(
    title: str,
    of: str | Callable[[Any], Any],
    show: Callable[[Any], str],
    help: str = "",  # noqa: A002 - as in HTML
    *,
    bad: bool = False,
    needed: Callable[[Any], bool] = _always,
) -> Column:
    """Return a column of numbers with units. of: as for `label`. bad: whether values other than 0 are bad."""

    def cell(row: Any) -> TableCell:
        value = _value(row, of)
        return figure(show(value), value, "bad" if bad and value else "")

    return Column(title, cell, numeric=True, help=help, needed=needed)


def _value(row: Any, of: str | Callable[[Any], Any]) -> Any:
    if callable(of):
        return of(row)
    return row.get(of) if isinstance(row, Mapping) else getattr(row, of)


def table(key: str, columns: Iterable[Column], rows: Iterable[Any]) -> PageTable:
    """Return a table of the columns that at least one row needs."""
    lines = list(rows)
    shown = tuple(column for column in columns if column.needed is _always or any(map(column.needed, lines)))
    return PageTable(key, shown, tuple(tuple(column.cell(row) for column in shown) for row in lines))


def milliseconds(value: float | None) -> str:
    """Return a duration in milliseconds, to a hundredth."""
    return NOT_MEASURED if value is None else f"{value:.2f}\u00a0ms"


def plain_text(value: Any) -> str:
    """Return a value of summary.json as an expectation compares it."""
    return (
        number(value) if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)
    )


def held_cell(expectation: Row) -> TableCell:
    """Return whether an expectation held."""
    return text_cell("held", "good") if expectation.get("held") else text_cell("did not hold", "bad")


def _unproven(expectation: Row) -> TableCell:
    periods = expectation.get("unproven") or ()
    return TableCell(number(len(periods)), len(periods), help="; ".join(periods))


EXPECTATION = label("Expectation", "text")
VALUE = quantity("Value", "value", plain_text)
HELD = Column("Held", held_cell)
_EXPECTATIONS = (
    EXPECTATION,
    VALUE,
    HELD,
    Column(
        "Unproven",
        _unproven,
        numeric=True,
        help="number of unproven link periods that it depends on",
        needed=lambda expectation: bool(expectation.get("unproven")),
    ),
)


def expectations_table(record: AnalysedRun) -> PageTable:
    """Return every expectation with its value, and the number of unproven periods it depends on."""
    return table("expectations", _EXPECTATIONS, record.summary.get("expectations") or ())


def unproven_periods(record: AnalysedRun) -> tuple[str, ...]:
    """Return the unproven link periods that any expectation depends on, each once."""
    expectations = record.summary.get("expectations") or ()
    return tuple(dict.fromkeys(period for e in expectations for period in e.get("unproven") or ()))


_FAULTS = (
    label("Fault", "name"),
    label("What", lambda fault: fault_label(fault["kind"], fault["target"])),
    Column("Values", lambda fault: text_cell(fault["values"]), needed=lambda fault: fault["values"]),
    quantity("Requested", "requested_s", seconds),
    quantity("Took effect", "applied_s", precise_seconds),
)


def faults_table(record: AnalysedRun) -> PageTable:
    """Return when each fault was requested and when it took effect, and its values."""
    values: dict[str, dict[str, None]] = {}
    for change in record.plan.changes:
        if text := change_values(change, record.plan):
            values.setdefault(change.fault, {})[text] = None
    faults = record.summary.get("faults") or ()
    rows = [{**row, "values": "; ".join(values.get(row["name"], ()))} for row in faults]
    return table("faults", _FAULTS, rows)


def throttles_table(record: AnalysedRun) -> PageTable:
    """Return what processes used while a fault left them little processor time or memory."""
    zero_ns = record.run.times.zero_ns or 0

    def limit(unit: Quantity) -> Callable[[float | None], str]:
        return lambda value: "" if value is None else unit.format(value)

    def used(each: ThrottleRecord) -> float:
        return each.processor_s * 1e9 / max(1, each.to_ns - each.from_ns)

    columns = (
        label("Process", "process"),
        quantity("From", lambda each: (each.from_ns - zero_ns) / 1e9, precise_seconds),
        quantity("To", lambda each: (each.to_ns - zero_ns) / 1e9, precise_seconds),
        quantity("Processor, at most", "processor", limit(FRACTION), needed=lambda each: each.processor),
        quantity("Processor, used", used, lambda share: f"{share:.1%}", "of one, by its control group"),
        quantity("Memory, at most", "memory_bytes", limit(SIZE), needed=lambda each: each.memory_bytes),
        quantity("Killed", "killed", str, "for lack of memory", needed=lambda each: each.killed),
    )
    return table("throttles", columns, record.run.throttles)


_CHAINS = (
    label("Region", "region"),
    quantity("Configuration", "number", str),
    quantity("Decided", "at_s", precise_seconds, "seconds since start"),
    label("Chain", lambda row: " → ".join(row["chain"]), "from head to tail"),
    label("Joining", "joining", "beyond the tail, catching up"),
)


def chains_table(record: AnalysedRun) -> PageTable:
    """Return every configuration of the regions' chains."""
    return table("chains", _CHAINS, record.chains)


def _exit_cell(process: ProcessRecord) -> TableCell:
    end = process.exit
    if end is None:
        return text_cell("no exit was seen", "bad")
    if end.starved:
        return text_cell("killed: it needed more memory than its limit")
    how = f"signal {end.signal}" if end.signal is not None else f"code {end.code}"
    return text_cell(how, "") if end.expected else text_cell(f"{how}, unexpected", "bad")


_PROCESSES = (
    label("Process", "name"),
    label("Host", "host"),
    quantity("PID", "pid", str),
    Column("Ended", _exit_cell),
)


def processes_table(record: AnalysedRun) -> PageTable:
    """Return node processes and their exits, unexpected exits first, up to a limit."""
    processes = sorted(record.run.processes, key=lambda each: each.exit is not None and each.exit.expected)
    return table("processes", _PROCESSES, processes[:PROCESSES_SHOWN])


def captures_table(record: AnalysedRun) -> PageTable:
    """Return every capture file with its packets, the kernel's drops, and the unusable parts."""
    left_out = {str(row["capture"]): _left_out(row) for row in record.captures}
    columns = (
        label("File", "file"),
        label("Where", lambda each: each.host or f"link {each.link}, side of {each.side}"),
        quantity("Packets", "packets", number),
        quantity("Dropped by the kernel", "kernel_drops", number, bad=True),
        label("Not used", lambda each: left_out.get(capture_name(Path(each.file)), "")),
    )
    return table("captures", columns, record.run.captures)


def _left_out(capture: Row) -> str:
    """Return the unusable parts of a capture: counts by name, and where it is damaged."""
    counts = [f"{number(one['count'])} {one['what']}" for one in capture.get("unused") or ()]
    return "; ".join([*counts, *filter(None, [capture.get("problem")])])


def _median_ms(probe: RoundTripProbe) -> float | None:
    times = sorted(probe.rtt_us)
    return times[len(times) // 2] / 1000 if times else None


_PROBES = (
    label("Pair", lambda probe: f"{probe.origin}{EN_DASH}{probe.target}"),
    label("When", "when"),
    quantity("Round trip, median", _median_ms, milliseconds),
    quantity("Probes", lambda probe: len(probe.rtt_us), number),
)


def probes_table(record: AnalysedRun) -> PageTable:
    """Return the median round trip of each pair before the nodes started and after they stopped."""
    return table("probes", _PROBES, record.run.probes)
