"""Systems side by side: what tells two systems apart on the same topology, load and faults, in one table.

Only where the runs are of different systems. What they promise stands above it, for whoever delivers less has
less to do; what the same numbers are called stands in `experiments.records.summary`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.pages.comparing.metrics import MetricComparison, compared
from analysis.pages.comparing.sides import Side
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
    (
        SECTION_TITLES["wan"],
        "wan",
        ("messages", "bytes", "stress_max", "copies_mean", "copies_max"),
    ),
)
"""The numbers of the table, by section of summary.json."""
SUBJECTS = {"all": "every event", "topic": "the topics that it follows", "content": "what it asked for"}


@dataclass(frozen=True, slots=True)
class SystemLine:
    """A property of each system, or of its run, in words."""

    title: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Systems:
    """The table: properties in words, then numbers by group."""

    names: tuple[str, ...]
    properties: tuple[SystemLine, ...]
    groups: tuple[tuple[str, tuple[MetricComparison, ...]], ...]


def systems(sides: Sequence[Side]) -> Systems | None:
    """None where all runs are of the same system."""
    names = tuple(side.record.plan.system for side in sides)
    if len(set(names)) < 2:
        return None
    rows, found = compared(sides, everything=True), []
    for title, section, wanted in GROUPS:
        mine = [row for name in wanted for row in rows if _is(row, section, name) and _is_known(row)]
        if mine:
            found.append((title, tuple(mine)))
    return Systems(names, tuple(_properties(sides)), tuple(found))


def _is(row: MetricComparison, section: str, name: str) -> bool:
    return row.section == section and row.metric.rpartition(".")[2] == name


def _is_known(row: MetricComparison) -> bool:
    return any(value.value is not None for value in row.values)


def _properties(sides: Sequence[Side]) -> list[SystemLine]:
    contracts = [side.record.plan.declared.contract for side in sides]
    return [
        SystemLine("A client gets", tuple(SUBJECTS[each.audience] for each in contracts)),
        SystemLine("Promised", tuple(f"{each.delivery}, order by {each.order}" for each in contracts)),
        SystemLine("Processes", tuple(str(len(side.record.plan.processes)) for side in sides)),
        SystemLine("Each event goes", tuple(map(_fanout, sides))),
        SystemLine("Over links for each delivery", tuple(map(_per_delivery, sides))),
    ]


def _fanout(side: Side) -> str:
    """To how many clients an event went, on average."""
    events = side.record.summary.get("events") or {}
    published, delivered = events.get("published"), events.get("delivered")
    return f"to {delivered / published:.1f} clients" if published and delivered else "not measured"


def _per_delivery(side: Side) -> str:
    """Bytes over links between regions, by events that came to a client."""
    delivered = (side.record.summary.get("events") or {}).get("delivered")
    size = (side.record.summary.get("wan") or {}).get("bytes")
    return scaled(size / delivered, "B") if delivered and size else "not measured"
