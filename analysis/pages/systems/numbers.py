"""The table of a comparison: each system's numbers, with minimum and maximum over its repetitions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from analysis.pages.report.formatting import EN_DASH, number, seconds, with_unit
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.tables import Column, PageTable, TableCell, table, text_cell
from analysis.pages.systems.sides import ComparedSystem, cut_of
from experiments.declared import Trait

Value = Callable[[AnalysedRun], float | None]
MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class SystemFigure:
    """A number of a run, and how it is shown. bad: whether values other than 0 are bad."""

    title: str
    value: Value
    show: Callable[[float], str]
    help: str = ""
    bad: bool = False


def systems_table(systems: Sequence[ComparedSystem]) -> PageTable:
    """Return a row for each system that ran."""
    columns = (
        Column("system", _system, help="with the delivery guarantee of its contract"),
        *(_column(figure) for figure in FIGURES),
        Column("runs", _runs, help="valid runs of those requested"),
    )
    return table("systems", columns, [system for system in systems if system.runs])


def _column(figure: SystemFigure) -> Column:
    def cell(system: ComparedSystem) -> TableCell:
        values = [figure.value(run.record) for run in system.basis]
        known = [value for value in values if value is not None]
        if not known:
            return TableCell(EN_DASH)
        middle, low, high = median(known), min(known), max(known)
        spread = "" if low == high else f"{figure.show(low)}{EN_DASH}{figure.show(high)}"
        return TableCell(figure.show(middle), middle, "bad" if figure.bad and high else "", spread)

    return Column(figure.title, cell, numeric=True, help=figure.help)


def _system(system: ComparedSystem) -> TableCell:
    return TableCell(system.name, system.name, below=system.shown.plan.declared.contract.delivery)


def _runs(system: ComparedSystem) -> TableCell:
    valid, asked = len(system.valid), system.asked
    if not valid:
        return text_cell(f"{len(system.runs)}, none valid", "bad")
    return text_cell(f"{valid} of {asked}")


def _cut_figure(name: str) -> Value:
    def value(record: AnalysedRun) -> float | None:
        cut = cut_of(record)
        return _known((record.summary.get("recovery") or {}).get(cut.fault), name) if cut else None

    return value


def _figure(section: str, name: str) -> Value:
    return lambda record: _known(record.summary.get(section), name)


def _known(figures: Mapping[str, float | None] | None, name: str) -> float | None:
    found = (figures or {}).get(name)
    return None if found is None else float(found)


def _bytes_per_delivery(record: AnalysedRun) -> float | None:
    delivered = _figure("events", "delivered")(record)
    links = {link.name for link in record.wan_links}
    sizes = [counts.bytes for counts in record.run.counters if counts.link in links]
    traffic = record.summary.get("traffic") or {}
    others: list[int] = [each["wan_bytes"] for each in traffic.values() if each.get("wan_bytes") is not None]
    if not sizes or not delivered or len(others) < len(traffic):
        return None
    return (sum(sizes) - sum(others)) / delivered


def _processors_per_delivery(*, of_clients: bool) -> Value:
    """Return processor time per delivery of client processes, or of the others."""

    def value(record: AnalysedRun) -> float | None:
        declared, delivered = record.plan.declared, _figure("events", "delivered")(record)
        roles = {process.name: process.role for process in record.plan.processes}
        used = [
            process.processor_s
            for process in record.run.processes
            if process.processor_s is not None
            and _is_client(declared.roles[roles[process.name]]) == of_clients
        ]
        return sum(used) * MICROSECONDS / delivered if used and delivered else None

    return value


def _is_client(traits: tuple[str, ...]) -> bool:
    return bool(traits) and set(traits) <= {Trait.PUBLISHER, Trait.SUBSCRIBER}


_MILLISECONDS, _MICROSECONDS = partial(with_unit, unit="ms"), partial(with_unit, unit="µs")
_F = SystemFigure
FIGURES = (
    _F("noticed", _cut_figure("detect_s"), seconds, "since the cut; if the system's messages are known"),
    _F("flows again", _cut_figure("switch_s"), seconds, "since the cut, until each stream delivers"),
    _F("caught up", _cut_figure("catch_up_s"), seconds, "since the cut, until the gap's events arrived"),
    _F("lost", _figure("events", "lost"), number, "never reached a client that expected them", bad=True),
    _F("repeated", _figure("events", "duplicated"), number, "reached a client again", bad=True),
    _F("out of order", _figure("events", "out_of_order"), number, "arrived after later ones", bad=True),
    _F("p50 before", _figure("latency", "before_p50_ms"), _MILLISECONDS, "until every client has it"),
    _F("p50 after", _figure("latency", "after_p50_ms"), _MILLISECONDS, "after the link was restored"),
    _F(
        "WAN bytes", _bytes_per_delivery, number,
        "of all frames on links except background traffic, per delivered event",
    ),
    _F(
        "servers", _processors_per_delivery(of_clients=False), _MICROSECONDS,
        "processor time of all but clients per delivered event, from time 0",
    ),
    _F(
        "clients", _processors_per_delivery(of_clients=True), _MICROSECONDS,
        "processor time of publishers and subscribers per delivered event, from time 0",
    ),
)  # fmt: skip
