"""Which link parameters each kind of link does not implement: a plan with one is refused before it starts.

What is not listed is implemented (the table is in docs/links.md).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from experiments.planned.changes import Direction, LinkChange
from experiments.planned.plan import Plan
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters

NOT_IN_NETEM = {"jitter_correlation": "correlated jitter"}
"""The kernel takes its correlated draw modulo twice the jitter, so that neighbours are not correlated
(`tabledist` in net/sched/sch_netem.c; measured under user-mode Linux, see docs/links.md).
"""
NOT_IN_VIRTUAL_TIME = {"queue_packets": "a queue limit"}
NOT_IN_VIRTUAL_LANS = {**NOT_IN_VIRTUAL_TIME, "jitter_us": "jitter", "loss": "loss"}
NOT_ON_SITE = {
    "jitter_us": "jitter",
    "jitter_correlation": "correlated jitter",
    "queue_packets": "a queue limit",
    "loss_burst_packets": "bursts of loss",
    "reorder": "reordering",
    "rate_traced": "a trace",
    "delay_traced": "a trace",
}
"""What links of an Emulab site do not do."""

_NOTHING = LinkParameters()


def lacking(parameters: LinkParameters, missing: Mapping[str, str]) -> Iterator[str]:
    """What of these parameters is missing, in words. missing: the words, by the field of LinkParameters."""
    for field, words in missing.items():
        if getattr(parameters, field) != getattr(_NOTHING, field):
            yield words


def lacking_in(
    plan: Plan, missing: Mapping[str, str], missing_in_lans: Mapping[str, str] | None = None
) -> str | None:
    """The first link or fault of a plan that has something which is missing, and what; None if none has.

    missing_in_lans: for the links within regions, unless it is the same.
    """
    of_kind = {"wan": missing, "lan": missing if missing_in_lans is None else missing_in_lans}
    for link in plan.links:
        for direction in Direction:
            if words := next(lacking(link.towards(direction), of_kind[link.kind]), None):
                return f"link {link.name} has {words}"
    for change in plan.changes:
        if isinstance(change, LinkChange) and (words := next(lacking(change.parameters, missing), None)):
            return f"fault {change.fault} gives {change.link} {words}"
    return None


def check_virtual(plan: Plan) -> None:
    """Raises InputError if links in virtual time lack something that a plan has."""
    if found := lacking_in(plan, NOT_IN_VIRTUAL_TIME, NOT_IN_VIRTUAL_LANS):
        said = f"{found}, which links in virtual time do not implement: take --on local"
        raise InputError(plan.experiment, None, "topology", said)


def with_links_that_can(plan: Plan) -> Plan:
    """The plan, with `auto` made `relay` where netem lacks something. Raises InputError if netem is asked
    for all the same.
    """
    found = None if plan.links_kind == "relay" else lacking_in(plan, NOT_IN_NETEM)
    if found is None:
        return plan
    if plan.links_kind == "netem":
        said = f"{found}, which links of kind netem do not implement: take --links relay"
        raise InputError(plan.experiment, None, "topology", said)
    return replace(plan, links_kind="relay")
