"""The names in summary.json (schema 1) that expectations may rely on: mistyped ones are noticed early.

The whole of summary.json is described in DESIGN.md and written by the analysis. A section that has None
here takes any name below it.
"""

from collections.abc import Iterable

from topologies.strict import suggestion

FAULT_FIELDS = (
    "detect_s",
    "resubscribe_s",
    "switch_s",
    "catch_up_s",
    "settled_s",
    "returned_s",
    "first_route_s",
    "rate_derived_s",
    "loss_derived_s",
    "connectivity_lost_s",
    "impaired",
    "affected_pairs",
    "backlog_events",
    "lost",
    "duplicated",
    "out_of_order",
)
SECTIONS: dict[str, tuple[str, ...] | None] = {
    "verdict": (),
    "fidelity": None,
    "events": (
        "published",
        "delivered",
        "tombstoned",
        "lost",
        "stray",
        "duplicated",
        "out_of_order",
        "resurrected",
        "corrupted",
        "unverified",
        "unordered_publishers",
    ),
    "throughput": ("events_per_s", "slowest_client_events_per_s", "bytes_per_s"),
    "latency": ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"),
    "recovery": None,
    "convergence": (
        "last_change_s",
        "connected",
        "full_s",
        "median_s",
        "beyond_way_s",
        "wait_max_s",
        "stalled",
        "late_switches",
    ),
    "agreement": None,
}


def path_problem(path: str, fault_names: Iterable[str]) -> str | None:
    """Why this path cannot be in the summary of an experiment with these faults, or None."""
    section, *rest = path.split(".")
    if section not in SECTIONS:
        return f"summary.json has no {section}{suggestion(section, SECTIONS)}"
    if section == "recovery":
        return _recovery_problem(rest, list(fault_names))
    names = SECTIONS[section]
    if names is None:
        return None
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
