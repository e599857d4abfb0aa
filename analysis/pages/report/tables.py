"""Tables as plain data, for one macro of the page to draw: columns, and cells with their text and what they
sort by.

The builders here are those that only lay out what run.json and summary.json say; fidelity, recovery,
convergence and backlog have modules of their own.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.capture.pcap.compressed import capture_name
from analysis.pages.report.bands import fault_label
from analysis.pages.report.formatting import (
    EN_DASH,
    NOT_MEASURED,
    number,
    precise_seconds,
    seconds,
)
from analysis.pages.report.run_reader import AnalysedRun, Row
from experiments.observations import ProcessExit

PROCESSES_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Cell:
    """`sort` orders the column; None (not measured) always goes last. `status` is "", "good" or "bad".
    `below` stands in small letters under the text; `help` is for who asks.
    """

    text: str
    sort: float | str | None = None
    status: str = ""
    below: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, whether it is right-aligned, and a longer explanation for who asks."""

    title: str
    numeric: bool = False
    help: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """What the page draws as one sortable table."""

    key: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def words(text: Any, status: str = "") -> Cell:
    """A cell of text, sorted by itself."""
    shown = "" if text is None else str(text)
    return Cell(shown, shown.lower(), status)


def figure(text: str, value: float | None, status: str = "") -> Cell:
    """A cell with a quantity, sorted by its value; a dash where it was not measured."""
    return Cell(EN_DASH if value is None else text, value, status)


def table(key: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> Table:
    """A table; every row must have a cell for every column."""
    made = Table(key, tuple(columns), tuple(tuple(row) for row in rows))
    assert all(len(row) == len(made.columns) for row in made.rows), key
    return made


def expectations_table(record: AnalysedRun) -> Table:
    """Every expectation with its value; and, if some rest on links that are unproven, on how many periods."""
    expectations = record.summary.get("expectations") or ()
    shaky = any(e.get("unproven") for e in expectations)
    rows = (
        (
            words(e["text"]),
            figure(plain_text(e.get("value")), e.get("value")),
            words("held" if e.get("held") else "did not hold", "good" if e.get("held") else "bad"),
            *((_unproven(e.get("unproven") or ()),) * shaky),
        )
        for e in expectations
    )
    rests_on = Column("Unproven", True, "on how many periods of links it rests that are unproven")
    columns = (Column("Expectation"), Column("Value", numeric=True), Column("Held"), *((rests_on,) * shaky))
    return table("expectations", columns, rows)


def _unproven(periods: Sequence[str]) -> Cell:
    return Cell(number(len(periods)), len(periods), help="; ".join(periods))


def unproven_periods(record: AnalysedRun) -> tuple[str, ...]:
    """On which unproven periods of links any expectation rests, each once."""
    expectations = record.summary.get("expectations") or ()
    return tuple(dict.fromkeys(period for e in expectations for period in e.get("unproven") or ()))


def faults_table(record: AnalysedRun) -> Table:
    """When each fault was asked for and when it held."""
    rows = (
        (
            words(fault["name"]),
            words(fault_label(fault["kind"], fault["target"])),
            figure(seconds(fault.get("requested_s")), fault.get("requested_s")),
            figure(precise_seconds(fault.get("applied_s")), fault.get("applied_s")),
        )
        for fault in record.summary.get("faults") or ()
    )
    columns = (Column("Fault"), Column("What"), Column("Asked for", True), Column("Took hold", True))
    return table("faults", columns, rows)


def chains_table(record: AnalysedRun) -> Table:
    """Every configuration of the regions' chains."""
    rows = (
        (
            words(row["region"]),
            figure(str(row["number"]), row["number"]),
            figure(precise_seconds(row["at_s"]), row["at_s"]),
            words(" → ".join(row["chain"])),
            words(row["joining"]),
        )
        for row in record.chains
    )
    columns = (
        Column("Region"),
        Column("Configuration", True),
        Column("Decided", True, "seconds since start"),
        Column("Chain", help="from head to tail"),
        Column("Joining", help="beyond the tail, catching up"),
    )
    return table("chains", columns, rows)


def processes_table(record: AnalysedRun) -> Table:
    """Node processes and how they ended; those that ended unexpectedly first, and not thousands of them."""
    processes = sorted(record.run.processes, key=lambda each: each.exit is not None and each.exit.expected)
    rows = (
        (
            words(each.name),
            words(each.host),
            figure(str(each.pid or ""), each.pid),
            _exit_cell(each.exit),
        )
        for each in processes[:PROCESSES_SHOWN]
    )
    return table("processes", (Column("Process"), Column("Host"), Column("PID", True), Column("Ended")), rows)


def captures_table(record: AnalysedRun) -> Table:
    """Every capture file, its packets, what the kernel dropped, and what of it could not be used."""
    left_out = {str(row["capture"]): _left_out(row) for row in record.captures}
    rows = (
        (
            words(each.file),
            words(each.host or f"link {each.link}, side of {each.side}"),
            figure(number(each.packets), each.packets),
            figure(number(each.kernel_drops), each.kernel_drops, "bad" if each.kernel_drops else ""),
            words(left_out.get(capture_name(Path(each.file)), "")),
        )
        for each in record.run.captures
    )
    columns = (
        Column("File"),
        Column("Where"),
        Column("Packets", True),
        Column("Dropped by the kernel", True),
        Column("Not used"),
    )
    return table("captures", columns, rows)


def _left_out(capture: Row) -> str:
    """What of a capture could not be used: counts by name, and where it is damaged."""
    counts = [f"{number(one['count'])} {one['what']}" for one in capture.get("unused") or ()]
    return "; ".join([*counts, *filter(None, [capture.get("problem")])])


def probes_table(record: AnalysedRun) -> Table:
    """Round trips of each pair before the nodes started and after they stopped, median."""
    rows = []
    for probe in record.run.probes:
        times = sorted(probe.rtt_us)
        median_ms = times[len(times) // 2] / 1000 if times else None
        rows.append(
            (
                words(f"{probe.origin}{EN_DASH}{probe.target}"),
                words(probe.when),
                figure(milliseconds(median_ms), median_ms),
                figure(number(len(times)), len(times)),
            )
        )
    columns = (Column("Pair"), Column("When"), Column("Round trip, median", True), Column("Probes", True))
    return table("probes", columns, rows)


def _exit_cell(end: ProcessExit | None) -> Cell:
    if end is None:
        return words("no exit was seen", "bad")
    how = f"signal {end.signal}" if end.signal is not None else f"code {end.code}"
    return words(how, "") if end.expected else words(f"{how}, unexpected", "bad")


def milliseconds(value: float | None) -> str:
    """A duration in milliseconds, to a hundredth."""
    return NOT_MEASURED if value is None else f"{value:.2f}\u00a0ms"


def plain_text(value: Any) -> str:
    """A value of summary.json as an expectation compares it."""
    return (
        number(value) if isinstance(value, int | float) and not isinstance(value, bool) else json.dumps(value)
    )
