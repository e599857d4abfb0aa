"""What was expected of all runs of a sweep together, as the sweep's page shows it."""

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.report.formatting import count_of
from analysis.report.tables import Cell, Column, Table, figure, plain_text, table, words
from analysis.sweeps import Sweep

ALL_RUNS = "all runs"


def expectations_table(sweep: Sweep) -> Table | None:
    """Each expectation with its value, of each group of runs that it was asked of; None without any."""
    if not sweep.record.expectations:
        return None
    columns = (Column("Expectation"), Column("Of"), Column("Value", numeric=True), Column("Held"))
    return table("expected", columns, (row for each in sweep.record.expectations for row in _rows(each)))


def missed_text(sweep: Sweep) -> str | None:
    """`1 of 3 expectations of all runs together did not hold`, or None if all held."""
    expectations = sweep.record.expectations
    missed = sum(not each["held"] for each in expectations)
    if not missed:
        return None
    return f"{missed} of {count_of(len(expectations), 'expectation')} of all runs together did not hold"


def _rows(expectation: Mapping[str, Any]) -> Iterator[list[Cell]]:
    for each in expectation["groups"] or [{**expectation, "of": ALL_RUNS}]:
        held = words("held", "good") if each["held"] else words("did not hold", "bad")
        value = each["value"]
        yield [words(expectation["text"]), words(each["of"]), figure(plain_text(value), value), held]
