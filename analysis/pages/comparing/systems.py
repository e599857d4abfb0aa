"""Systems side by side: one table of the differences between systems on the same topology, load and faults.

It exists only if the runs are of different systems. The systems' guarantees come first, because a system that
delivers less has less work. `experiments.records.summary` has the titles of the numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.pages.comparing.metrics import MetricComparison, compared
from analysis.pages.comparing.sides import ComparedRun
from analysis.pages.report.formatting import scaled
from analysis.timelines.latency import PHASES
from experiments.records.summary import SECTION_TITLES

GROUPS = (
    ("Delivery", "events", ("published", "delivered", "lost", "duplicated", "out_of_order")),
    ("Latency", "latency", tuple(f"{phase}_p{p}_ms" for phase in PHASES for p in (50, 95))),
    (
        "Recovery",
        "recovery",
        (
            "detect_s",
            "resubscribe_s",
            "first_route_s",
            "switch_s",
            "catch_up_s",
            "settled_s",
            "affected_pairs",
        ),
    ),
    (SECTION_TITLES["wan"], "wan", ("messages", "bytes", "stress_max", "copies_mean", "copies_max")),
)
"""The numbers of the table, by section of summary.json."""
SUBJECTS = {"all": "every event", "topic": "its topics", "content": "events that match its subscriptions"}


@dataclass(frozen=True, slots=True)
class SystemLine:
    """A property of each system, or of its run, as text."""

    title: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Systems:
    """The table: properties as text, then numbers by group."""

    names: tuple[str, ...]
    properties: tuple[SystemLine, ...]
    groups: tuple[tuple[str, tuple[MetricComparison, ...]], ...]


def systems(sides: Sequence[ComparedRun]) -> Systems | None:
    """Return the table; None if all runs are of the same system."""
    names = tuple(side.record.plan.system for side in sides)
    if len(set(names)) < 2:
        return None
    rows, found = compared(sides, everything=True), []
    for title, section, wanted in GROUPS:
        group = [
            row
            for name in wanted
            for row in rows
            if (row.section, row.metric.rpartition(".")[2]) == (section, name)
            and any(value.value is not None for value in row.values)
        ]
        if group:
            found.append((title, tuple(group)))
    return Systems(names, tuple(_properties(sides)), tuple(found))


def _properties(sides: Sequence[ComparedRun]) -> list[SystemLine]:
    contracts = [side.record.plan.declared.contract for side in sides]
    return [
        SystemLine("A client receives", tuple(SUBJECTS[each.audience] for each in contracts)),
        SystemLine("Guarantees", tuple(f"{each.delivery}, order by {each.order}" for each in contracts)),
        SystemLine("Processes", tuple(str(len(side.record.plan.processes)) for side in sides)),
        SystemLine("Each event reaches", tuple(map(_fanout, sides))),
        SystemLine("Link bytes per delivery", tuple(map(_per_delivery, sides))),
    ]


def _fanout(side: ComparedRun) -> str:
    """Return the mean number of clients that received an event."""
    events = side.record.summary.get("events") or {}
    published, delivered = events.get("published"), events.get("delivered")
    return f"{delivered / published:.1f} clients" if published and delivered else "not measured"


def _per_delivery(side: ComparedRun) -> str:
    """Return bytes on links between regions per delivery to a client."""
    delivered = (side.record.summary.get("events") or {}).get("delivered")
    size = (side.record.summary.get("wan") or {}).get("bytes")
    return scaled(size / delivered, "B") if delivered and size else "not measured"
