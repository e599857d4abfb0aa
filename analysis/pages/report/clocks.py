"""Differences between the machines' clocks: a table, and a chart of each clock with its error bound.

A clock is drawn relative to the straight line of its longest period without a change, because its offset
(hours, perhaps) and drift would hide all else; both are given beside it as text.
"""

from analysis.capture.clocks.run_clocks import summary
from analysis.pages.report.formatting import count_of, number, short_time, with_unit
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.tables import Column, PageTable, figure, label, quantity, table, text_cell

_SOURCES = {
    "reference": "the run's clock",
    "packets": "packets in both directions",
    "control": "control connection only",
    "nothing": "unknown",
}


def _bound(bound_ms: float) -> str:
    return f"±{short_time(bound_ms / 1e3, 2)}" if bound_ms else "0"


_COLUMNS = (
    label("Machine", "machine"),
    Column(
        "Known from", lambda row: text_cell(_SOURCES[row["from"]], "bad" if row["from"] == "nothing" else "")
    ),
    Column(
        "Offset",
        lambda row: figure(short_time((row["offset_ms"] or 0) / 1e3), row["offset_ms"]),
        numeric=True,
        help="from the run's clock, in the longest period without a change",
    ),
    quantity("Drift", "drift_ppm", lambda ppm: with_unit(ppm, "ppm"), "rate relative to the run's clock"),
    quantity("Error bound", "error_ms", _bound, "median error bound of the offset, in either direction"),
    quantity("Widest bound", "error_max_ms", _bound, "near a change of the clock, or far from any packet"),
    quantity("Packets", "packets", number, "seen by both machines, in both directions"),
    label("Changes", lambda row: count_of(row["changes"], "change") if row["changes"] else "none"),
)


def clocks_table(record: AnalysedRun) -> PageTable:
    """Return what is known of each machine's clock, and from what data."""
    return table("clocks", _COLUMNS, summary(record.machines))
