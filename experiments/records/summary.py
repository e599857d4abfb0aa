"""The names in summary.json (schema 1) on which expectations may rely, so that mistyped ones are found early.

This is the only definition of the figures that nights follow: their titles and which direction is better. A
section with None accepts any name below it. The analysis writes summary.json.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from topologies.strict import suggestion

Better = Literal["lower", "higher", ""]


class SummaryFigure(NamedTuple):
    """A figure of summary.json: its title, which direction is better, and whether nights follow it.

    meaning: for a recovery time, the event that ends it; figures with a meaning are in reports and
    comparisons.
    """

    title: str
    better: Better = ""
    followed: bool = True
    meaning: str = ""


METRICS: Mapping[str, Mapping[str, SummaryFigure]] = {
    "throughput": {
        "events_per_s": SummaryFigure("Throughput", "higher"),
        "slowest_client_events_per_s": SummaryFigure("Throughput of the slowest client", "higher"),
        "bytes_per_s": SummaryFigure("Throughput in bytes", "higher"),
    },
    "latency": {
        "mean_ms": SummaryFigure("Latency, mean", "lower"),
        "p50_ms": SummaryFigure("Latency p50", "lower"),
        "p95_ms": SummaryFigure("Latency p95", "lower"),
        "p99_ms": SummaryFigure("Latency p99", "lower"),
        "max_ms": SummaryFigure("Latency, longest", "lower"),
        **{
            f"{phase}_p{percent}_ms": SummaryFigure(
                f"Latency p{percent} {phase} faults", "lower", followed=False
            )
            for phase in ("before", "during", "after")
            for percent in (50, 95)
        },
    },
    "events": {
        "published": SummaryFigure("Events published"),
        "delivered": SummaryFigure("Deliveries"),
        "tombstoned": SummaryFigure("Delivered as tombstones"),
        "lost": SummaryFigure("Events lost", "lower"),
        "unacknowledged": SummaryFigure("Missing events of publishers that died before the acknowledgement"),
        "stray": SummaryFigure("Events at clients that must not get them", "lower"),
        "duplicated": SummaryFigure("Events duplicated", "lower"),
        "out_of_order": SummaryFigure("Events out of order", "lower"),
        "resurrected": SummaryFigure("Events resurrected", "lower"),
        "corrupted": SummaryFigure("Events corrupted", "lower"),
        "unverified": SummaryFigure("Events not compared", followed=False),
        "unordered_publishers": SummaryFigure("Events against their publisher's order", "lower"),
        "published_twice": SummaryFigure("Event numbers published twice", "lower"),
    },
    "subscriptions": {
        "asked": SummaryFigure("Subscriptions requested"),
        "unconfirmed": SummaryFigure("Subscriptions not confirmed in time", "lower"),
        "wait_max_s": SummaryFigure("Longest wait for a subscription", "lower"),
    },
    "churn": {
        "came": SummaryFigure("Processes that arrived or came back"),
        "went": SummaryFigure("Processes that left"),
    },
    "convergence": {
        "last_change_s": SummaryFigure("Last change", followed=False),
        "connected": SummaryFigure("Regions connected", followed=False),
        "full_s": SummaryFigure("Every stream flows again", "lower"),
        "median_s": SummaryFigure("A stream flows again, median", "lower"),
        "beyond_way_s": SummaryFigure("Every stream flows again, less its path's delay", "lower"),
        "wait_max_s": SummaryFigure("Longest wait after the last change", "lower"),
        "missed": SummaryFigure("Missed after the last change", "lower"),
        "stalled": SummaryFigure("Streams that stay stalled", "lower"),
        "late_switches": SummaryFigure("Changes of source at rest", "lower"),
        "tcp_retry_s": SummaryFigure("TCP retransmits over the link", "lower", followed=False),
    },
    "wan": {
        "messages": SummaryFigure("Messages over links"),
        "bytes": SummaryFigure("Bytes over links", "lower"),
        "stress_max": SummaryFigure("Messages over the busiest link"),
        "copies_mean": SummaryFigure("Copies of an event over a link, mean", "lower"),
        "copies_max": SummaryFigure("Copies of an event over a link, most", "lower"),
    },
    "fidelity": {"cpu_max": SummaryFigure("Processors, busiest")},
}
"""The figures by section, in the order in which they are shown."""
OF_STREAMS = tuple(name for name in METRICS["events"] if name != "unordered_publishers")
"""The event figures of each stream, if there are few streams."""
STREAMS_MAX = 100
"""Largest number of streams for which each has figures of its own."""
WRONG_EVENT_FIGURES = tuple(name for name, figure in METRICS["events"].items() if figure.better == "lower")
"""Figures that count wrong events."""
SECTION_TITLES: Mapping[str, str] = {
    "throughput": "Throughput",
    "latency": "Latency",
    "recovery": "Recovery",
    "convergence": "At rest after the last change",
    "events": "Events",
    "wan": "Cost of the links between regions",
    "subscriptions": "Subscriptions",
    "fidelity": "Machine",
    "measures": "Measured by the system",
}
"""Titles of the sections on pages, in their order."""
RECOVERY: Mapping[str, SummaryFigure] = {
    "detect_s": SummaryFigure(
        "Noticed",
        "lower",
        meaning="the first node acts on the silence",
    ),
    "resubscribe_s": SummaryFigure(
        "Subscribed again",
        "lower",
        meaning="the last affected region has requested the stream from another one",
    ),
    "switch_s": SummaryFigure(
        "Events flow again",
        "lower",
        meaning="every affected stream has delivered an event published after the fault",
    ),
    "catch_up_s": SummaryFigure(
        "Caught up", "lower", meaning="no event published in the gap is missing any more"
    ),
    "settled_s": SummaryFigure(
        "Latency settled", "lower", meaning="p95 stays within 20 % of what the path allows, for 2 s"
    ),
    "returned_s": SummaryFigure(
        "Direct again",
        "lower",
        meaning="every affected stream comes from its owner again",
    ),
    "backlog_events": SummaryFigure("Backlog", "lower"),
    "lost": SummaryFigure("Lost", "lower"),
    "duplicated": SummaryFigure("Duplicated", "lower"),
    "out_of_order": SummaryFigure("Out of order", "lower"),
    "affected_pairs": SummaryFigure("Affected pairs"),
    # The same recovery by other methods: tracked every night, but only the figures above are judged.
    "first_route_s": SummaryFigure("First stream flows again"),
    "rate_derived_s": SummaryFigure("Full convergence, by rates"),
    "loss_derived_s": SummaryFigure("Convergence by losses"),
    "connectivity_lost_s": SummaryFigure("Longest silence"),
    "impaired": SummaryFigure("Impaired"),
}
"""The figures of each fault."""
FAULT_FIELDS = tuple(RECOVERY)
TRAFFIC: Mapping[str, SummaryFigure] = {
    "asked_bits_per_s": SummaryFigure("Asked for"),
    "achieved_bits_per_s": SummaryFigure("Arrived"),
    "sent_bytes": SummaryFigure("Bytes sent"),
    "received_bytes": SummaryFigure("Bytes received"),
    "arrived_bytes": SummaryFigure("Bytes received over the last link"),
    "retransmissions": SummaryFigure("Segments retransmitted"),
    "loss": SummaryFigure("Datagrams lost"),
    "wan_bytes": SummaryFigure("Bytes over links"),
}
"""The figures of each entry of background traffic (`analysis.timelines.links.traffic`)."""
OPEN = ("fidelity", "agreement", "recovery", "measures")
"""Sections that accept any name. `measures` are the system's own."""
SECTIONS: dict[str, tuple[str, ...] | None] = {
    "verdict": (),
    **{section: tuple(figures) for section, figures in METRICS.items()},
    **dict.fromkeys(OPEN),
    "streams": OF_STREAMS,
    "traffic": None,
}


def path_problem(path: str, fault_names: Iterable[str], traffic: Iterable[str] = ()) -> str | None:
    """Return why this path cannot be in the summary of an experiment with these faults and traffic, or
    None.
    """
    section, *rest = path.split(".")
    if section not in SECTIONS:
        return f"summary.json has no {section}{suggestion(section, SECTIONS)}"
    if section == "recovery":
        return _recovery_problem(rest, list(fault_names))
    if section == "traffic":
        return _traffic_problem(rest, list(traffic))
    names = SECTIONS[section]
    if names is None:
        return None
    if section == "streams":  # only the plan knows their names, which may have dots
        section, rest = "streams.<stream>", rest[max(1, len(rest) - 1) :]
    if not names:
        return f"{section} is a single value" if rest else None
    if len(rest) != 1 or rest[0] not in names:
        return f"{section} has no {'.'.join(rest) or 'value of its own'}{suggestion('.'.join(rest), names)}"
    return None


def _recovery_problem(rest: list[str], fault_names: list[str]) -> str | None:
    if not rest or rest[0] not in fault_names:
        return (
            f"no fault is named {rest[0] if rest else ''!r}{suggestion(rest[0] if rest else '', fault_names)}"
        )
    if len(rest) != 2 or rest[1] not in FAULT_FIELDS:
        return f"recovery has no {'.'.join(rest[1:])!r}{suggestion('.'.join(rest[1:]), FAULT_FIELDS)}"
    return None


def _traffic_problem(rest: list[str], names: list[str]) -> str | None:
    if not rest or rest[0] not in names:
        return f"no traffic is named {rest[0] if rest else ''!r}{suggestion(rest[0] if rest else '', names)}"
    if len(rest) != 2 or rest[1] not in TRAFFIC:
        return f"traffic has no {'.'.join(rest[1:])!r}{suggestion('.'.join(rest[1:]), TRAFFIC)}"
    return None
