"""Link parameters that each kind of link does not implement. A plan that uses one is refused at the start.

All other parameters are implemented (the table is in docs/links.md).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from experiments.planned.changes import LinkChange, LinkDirectionName
from experiments.planned.plan import Plan
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters

NOT_IN_NETEM = {
    "jitter_correlation": "correlated jitter",
    "loss duplicate": "loss together with duplicates",
}
"""The kernel takes its correlated draw modulo twice the jitter, so consecutive packets are not correlated
(`tabledist` in net/sched/sch_netem.c; 20 ms, 5 ms and 75 % gave 0.00 over 600 datagrams in user-mode Linux,
the relay 0.75). It passes a packet once that is both lost and duplicated (`netem_enqueue`).
"""
NOT_IN_VIRTUAL_TIME = {"queue_packets": "a queue limit", "icmp_dropped": "a path-MTU black hole"}
NOT_IN_VIRTUAL_LANS = {**NOT_IN_VIRTUAL_TIME, "jitter_us": "jitter", "loss": "loss", "corrupt": "corruption"}
CHANGED_MTU = "another MTU"
"""Only the relay has it in a single direction; links in virtual time have none."""
NOT_ON_SITE = {
    "jitter_us": "jitter",
    "jitter_correlation": "correlated jitter",
    "queue_packets": "a queue limit",
    "loss_burst_packets": "bursts of loss",
    "duplicate": "duplicates",
    "corrupt": "corruption",
    "reorder": "reordering",
    "icmp_dropped": "a path-MTU black hole",
    "rate_traced": "a trace",
    "delay_traced": "a trace",
}
"""Parameters that links of an Emulab site do not implement."""

_NOTHING = LinkParameters()


def lacking(parameters: LinkParameters, missing: Mapping[str, str]) -> Iterator[str]:
    """Yield the description of each parameter that is set but not implemented.

    missing: the descriptions, by the field of LinkParameters, or by several that only together are missing.
    """
    for fields, words in missing.items():
        if all(getattr(parameters, field) != getattr(_NOTHING, field) for field in fields.split()):
            yield words


def lacking_in(
    plan: Plan, missing: Mapping[str, str], missing_in_lans: Mapping[str, str] | None = None
) -> str | None:
    """Describe the first link or fault of a plan that uses a missing parameter; None if there is none.

    missing_in_lans: the missing parameters of links within regions, if they differ from `missing`.
    """
    of_kind = {"wan": missing, "lan": missing if missing_in_lans is None else missing_in_lans}
    for link in plan.links:
        for direction in LinkDirectionName:
            if words := next(lacking(link.towards(direction), of_kind[link.kind]), None):
                return f"link {link.name} has {words}"
    for change in plan.changes:
        if not isinstance(change, LinkChange):
            continue
        if (selects := change.selects) and (selects.port or missing is not NOT_IN_VIRTUAL_TIME):
            return f"fault {change.fault} selects packets of {change.link} by {selects}"
        words = next(lacking(change.parameters, missing), None)
        if words is None and not (missing is NOT_IN_NETEM and _changes_both(plan, change)):
            words = _changed_mtu(plan, change)
        if words:
            return f"fault {change.fault} gives {change.link} {words}"
    return None


def _changes_both(plan: Plan, change: LinkChange) -> bool:
    """Return whether the other direction of the link has the same MTU from this time on."""
    other = [
        each.parameters.mtu_bytes
        for each in plan.changes
        if isinstance(each, LinkChange)
        and (each.link, each.at_us) == (change.link, change.at_us)
        and each.direction is not change.direction
    ]
    return other == [change.parameters.mtu_bytes]


def _changed_mtu(plan: Plan, change: LinkChange) -> str | None:
    link = next(each for each in plan.links if each.name == change.link)
    is_same = change.parameters.mtu_bytes == link.towards(change.direction).mtu_bytes
    return None if is_same else CHANGED_MTU


def check_virtual(plan: Plan) -> None:
    """Check that links in virtual time implement all parameters of a plan. Raises InputError."""
    if found := lacking_in(plan, NOT_IN_VIRTUAL_TIME, NOT_IN_VIRTUAL_LANS):
        problem = f"{found}, which links in virtual time do not implement: use --on local"
        raise InputError(plan.experiment, None, "topology", problem)


def with_links_that_can(plan: Plan) -> Plan:
    """Return the plan with links of kind `relay` if it uses a parameter that netem lacks.

    Raises InputError if such a plan requests netem.
    """
    found = None if plan.links_kind == "relay" else lacking_in(plan, NOT_IN_NETEM)
    if found is None:
        return plan
    if plan.links_kind == "netem":
        problem = f"{found}, which links of kind netem do not implement: use --links relay"
        raise InputError(plan.experiment, None, "topology", problem)
    return replace(plan, links_kind="relay")
