"""Which messages to search for in the captures of a run, and at which port."""

from analysis.capture.markers import MarkerSearch
from experiments.declared import Trait
from experiments.planned.plan import Plan
from node.core.message_layout import Codec
from node.systems import codec_of


def messages_of(plan: Plan) -> Codec | MarkerSearch | None:
    """Return what to search a run's captures for; None if its messages cannot be decoded."""
    if not plan.declared.shows_events:
        return codec_of(plan.system)
    declared, addresses = plan.declared, {host.name: host.address for host in plan.hosts}
    clients = [each for each in plan.processes if not declared.has(each.role, Trait.SERVER)]
    publishers = {
        addresses[each.host]: frozenset(
            stream.number
            for stream in plan.streams
            if not {each.region, each.name}.isdisjoint(stream.publishers)
        )
        for each in clients
        if declared.has(each.role, Trait.PUBLISHER)
    }
    receivers = {addresses[each.host] for each in clients if declared.has(each.role, Trait.SUBSCRIBER)}
    return MarkerSearch(
        plan.workload["event_size_bytes"],
        publishers,
        frozenset(receivers),
        bool(declared.having(Trait.SERVER)),
    )


def message_port(plan: Plan) -> int | None:
    """Return the port that messages go to or come from; None means any."""
    return None if plan.declared.shows_events else plan.port
