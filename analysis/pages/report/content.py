"""The report's section on content: the number of subscriptions and clients that an event matched."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from analysis.pages.report.formatting import number
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.sections import Captioned, ReportSection
from analysis.pages.report.tables import PageTable, quantity, table
from analysis.parquet_files import read_any
from analysis.timelines.delivery.selectivity import OF_CLIENTS, OF_SUBSCRIPTIONS
from analysis.timelines.schemas import SELECTIVITY
from experiments.records.rundir import RunDirectory

WHAT = (OF_SUBSCRIPTIONS, OF_CLIENTS)


def section(record: AnalysedRun, run: RunDirectory) -> tuple[ReportSection, ...]:
    """Return the section of one run; empty if the system has no content-based subscriptions."""
    figures = record.summary.get("content")
    counted = read_any(run.table("selectivity"), SELECTIVITY)
    if not figures or counted is None:
        return ()
    found = ReportSection(
        key="content",
        title="Content",
        words=tuple(_sentence(what, figures[what]) for what in WHAT if what in figures),
        tables=(Captioned("Events by number of matches", _histogram(counted)),),
    )
    return (found,)


def _sentence(what: str, figures: Mapping[str, Any]) -> str:
    mean, half, most, at_most = (number(figures.get(name)) for name in ("mean", "p50", "p95", "max"))
    return (
        f"An event matched {mean} {what} on average: half of the events at most {half}, 95 % at most"
        f" {most}, none more than {at_most}; {100 * (figures.get('none') or 0):.3g} % of them none."
    )


def _histogram(counted: pa.Table) -> PageTable:
    """Return a row for each class of numbers: none, 1, 2 to 3, 4 to 7 and so on."""
    found: dict[int, dict[str, int]] = {}
    for row in counted.to_pylist():
        at = found.setdefault(row["matched"].bit_length(), dict.fromkeys(WHAT, 0))
        at[row["what"]] += row["events"]
    columns = (
        quantity("Matches", "class", _class),
        *(quantity(f"Events, by {what}", what, number) for what in WHAT),
    )
    return table(
        "selectivity", columns, [{"class": bits, **events} for bits, events in sorted(found.items())]
    )


def _class(bits: float) -> str:
    """Return the range of numbers with this bit length."""
    first, last = (1 << int(bits)) >> 1, (1 << int(bits)) - 1
    return number(first) if first == last or not bits else f"{number(first)} to {number(last)}"
