"""Recovery on the page: our numbers for each fault beside the paper's text, and each stream and client."""

from collections.abc import Callable
from dataclasses import dataclass

from analysis.pages.report.charts.bands import fault_label
from analysis.pages.report.formatting import NOT_MEASURED, number, precise_seconds, seconds, short_time
from analysis.pages.report.paper import PaperSection, paper_section
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.pages.report.tables import ROWS_MAX, PageTable, label, quantity, table
from experiments.records.summary import RECOVERY

TITLES = {key: figure.title for key, figure in RECOVERY.items()}
"""The page's titles of the summary's figures."""
TIMES = tuple((key, figure.title, figure.meaning) for key, figure in RECOVERY.items() if figure.meaning)
"""The figures in the order in which they happen; times count from when the fault took effect."""
FURTHER = (
    ("first_route_s", "until the first affected stream delivers an event published after the fault", seconds),
    ("rate_derived_s", "until all streams carry 95 % of their load in time again, for 2 s", seconds),
    ("loss_derived_s", "time in which the load produces the late or lost events", seconds),
    ("connectivity_lost_s", "longest time in which some client got no event of a stream", seconds),
    ("impaired", "events that a client got late or never", number),
)
"""The same recovery by other methods."""
IN_SHORT = {
    "rate_derived_s": "By rates",
    "loss_derived_s": "By losses",
    "connectivity_lost_s": "Longest silence",
    "impaired": "Impaired",
}
"""Headings of those that each stream and client has."""
TERMS = {
    "applied_s": "RFC 6412: convergence event instant",
    "switch_s": "of the slowest stream; RFC 6412: route-specific convergence, to its first packet",
    "returned_s": "RFC 6414: reversion time",
    "first_route_s": "RFC 6412: first route convergence time",
    "rate_derived_s": "RFC 6412: full convergence time, rate-derived method, with a sampling interval of"
    " 200 ms and a sustained convergence validation time of 2 s",
    "loss_derived_s": "RFC 6412: loss-derived convergence time. Late events take longer than the forwarding"
    " delay threshold: 20 % above what the path allows",
    "connectivity_lost_s": "RFC 6412: route loss of connectivity period",
    "impaired": "RFC 6414: impaired packets",
}
"""Terms of the RFCs (docs/recovery.md)."""
METHODS_FIELDS = " (rate_derived_s, loss_derived_s)"
"""Text that a note has after "by rates and losses"."""
_WRONG = ("lost", "duplicated", "out_of_order")


@dataclass(frozen=True, slots=True)
class RecoveryMeasure:
    """One row of a fault's recovery."""

    title: str
    meaning: str
    value: str
    missing: bool
    quotation: str
    term: str = ""  # term of RFC 6412 or 6414


@dataclass(frozen=True, slots=True)
class FaultRecoveryTable:
    """One fault's recovery."""

    fault: str
    label: str
    measures: tuple[RecoveryMeasure, ...]
    citation: str
    reasons: tuple[str, ...]  # why some figures could not be measured
    pairs: PageTable
    bar: str = ""  # error bound of its times, if several clocks measured them


def recoveries(record: AnalysedRun) -> tuple[FaultRecoveryTable, ...]:
    """Return the recovery of each fault in the summary or the recovery table, in the order of the faults."""
    known = set(record.summary.get("recovery") or {}) | {row["fault"] for row in record.recovery}
    faults = [fault for fault in record.summary.get("faults") or () if fault["name"] in known]
    section = paper_section(record.experiment)
    return tuple(_recovery(record, fault, section) for fault in faults)


def _recovery(record: AnalysedRun, fault: Row, section: PaperSection | None) -> FaultRecoveryTable:
    figures = (record.summary.get("recovery") or {}).get(fault["name"]) or {}
    rows = [row for row in record.recovery if row["fault"] == fault["name"]]
    words = section.words.get(fault["kind"], {}) if section else {}
    values = {**figures, "applied_s": fault.get("applied_s")}

    def measured(key: str, title: str, meaning: str, show: Callable[[float | None], str]) -> RecoveryMeasure:
        # A worst case is null if any of its cases is; the table's maximum would be too low.
        value = values.get(key)
        return RecoveryMeasure(
            title, meaning, show(value), value is None, words.get(key, ""), TERMS.get(key, "")
        )

    asked = f"requested at {seconds(fault.get('requested_s'))}"
    held = measured("applied_s", "Took effect", asked, precise_seconds)
    times = (measured(*entry, seconds) for entry in TIMES if entry[0] != "returned_s" or entry[0] in figures)
    others = (measured(key, TITLES[key], meaning, show) for key, meaning, show in FURTHER if key in figures)
    backlog = measured(
        "backlog_events", "Backlog", "events that one client had to catch up with, at most", number
    )
    return FaultRecoveryTable(
        fault=fault["name"],
        label=fault_label(fault["kind"], fault["target"]),
        measures=(held, *times, *others, backlog, _wrong(figures, words.get("lost", ""))),
        citation=section.citation if section and words else "",
        reasons=_reasons(rows, figures),
        pairs=_pairs_table(record, fault["name"], rows),
        bar=f"±{short_time(figures['error_s'], 2)}" if figures.get("error_s") else "",
    )


def _wrong(figures: Row, quotation: str) -> RecoveryMeasure:
    """Return the incorrect deliveries over all clients."""
    values = [figures.get(key) for key in _WRONG]
    known = None not in values
    value = "0" if not any(values) else ", ".join(number(value) for value in values)
    meaning = "(event, client) pairs, noticed between this fault and the next"
    shown = value if known else NOT_MEASURED
    return RecoveryMeasure("Lost, duplicated, out of order", meaning, shown, not known, quotation)


def _reasons(rows: list[Row], figures: Row) -> tuple[str, ...]:
    """Return why figures of the fault could not be measured, each reason once."""
    texts = (row["reason"] for row in rows if row["affected"] and row.get("reason"))
    reasons = {reason for text in texts for reason in text.split("; ")}
    return tuple(sorted(reason_text(r) for r in reasons if figures.get(r.partition(":")[0]) is None))


def reason_text(reason: str) -> str:
    """Return a reason of the summary, `settled_s: why`, with the page's title of the figure."""
    key, colon, why = reason.partition(": ")
    return f"{TITLES[key]}: {why}" if colon and key in TITLES else reason


def note_in_words(note: str) -> str:
    """Return a note of the summary, `recovery.cut: settled_s: why`, in the page's words."""
    subject, colon, why = note.partition(": ")
    if not colon or not subject.startswith("recovery."):
        return note
    return f"{subject.removeprefix('recovery.')}: {reason_text(why)}".replace(METHODS_FIELDS, "")


def _pairs_table(record: AnalysedRun, fault: str, rows: list[Row]) -> PageTable:
    """Return a row for each affected (stream, client)."""
    columns = (
        label("Stream", lambda row: f"s{row['stream']} from {record.origin(row['stream'])}"),
        label("Client", "client"),
        label("By", "affected_by", "evidence that the fault affected it: its process, its route, a gap"),
        *(quantity(title, key, seconds, meaning) for key, title, meaning in TIMES),
        quantity("Backlog", "backlog_events", number),
        quantity("Lost", "lost", number, bad=True),
        *(quantity(IN_SHORT[key], key, show, meaning) for key, meaning, show in FURTHER if key in IN_SHORT),
    )
    affected = sorted((row for row in rows if row["affected"]), key=_slowness)
    return table(f"pairs-{fault}", columns, affected[:ROWS_MAX])


def _slowness(row: Row) -> tuple[bool, float]:
    """Return the sort key of a pair: those that never recovered first, then the slowest."""
    return row.get("switch_s") is not None, -(row.get("switch_s") or 0.0)
