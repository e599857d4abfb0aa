"""Sections that a system adds to its runs' reports: text and tables, as plain data.

A function builds them from a run: `analysis.systems.catalog` has those of Cutset's systems; others declare it
(`node.core.declaration.System.report`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.tables import PageTable
from experiments.records.rundir import RunDirectory


@dataclass(frozen=True, slots=True)
class Captioned:
    """A table with its caption."""

    caption: str
    table: PageTable


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the page."""

    key: str
    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Captioned, ...] = ()


Report = Callable[[AnalysedRun, RunDirectory], Sequence[ReportSection]]
