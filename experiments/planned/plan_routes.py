"""The routes and multicast trees between a plan's regions (`topologies.routes`), by the plan's own links."""

from experiments.planned.changes import LinkDirectionName
from experiments.planned.plan import LinkPlan, Plan
from topologies.routes import Hop, RouteEdge, hop_edges, next_edges, routes
from topologies.routing import STATIC


def next_links(plan: Plan) -> dict[str, dict[str, LinkPlan]]:
    """Return, for each region, the WAN link towards each other region that it can reach."""
    links = {link.name: link for link in plan.links}
    table = next_edges(_names(plan), _edges(plan), _protocol(plan))
    return {
        source: {target: links[edge.name] for target, edge in row.items()} for source, row in table.items()
    }


def carriers(plan: Plan) -> dict[Hop, tuple[LinkPlan, LinkDirectionName]]:
    """Return the WAN link that carries each hop, and its direction; a parallel link may carry none."""
    links = {link.name: link for link in plan.links}
    found = {}
    for hop, edge in hop_edges(_edges(plan), _protocol(plan)).items():
        forward = hop == (edge.a, edge.b)
        found[hop] = links[edge.name], LinkDirectionName.FORWARD if forward else LinkDirectionName.BACKWARD
    return found


def hops(plan: Plan) -> dict[Hop, tuple[Hop, ...]]:
    """Return the route between any two connected regions, hop by hop."""
    return routes(_names(plan), _edges(plan), _protocol(plan))


def group_trees(plan: Plan) -> dict[str, dict[str, str]]:
    """Return the tree by which datagrams to a multicast group leave each region: region -> region before it.

    Regions join in the order of their routes' lengths. Each adds only the part of its route that is not yet
    in the tree, so a tree has no loop even if routes do not nest.
    """
    trees: dict[str, dict[str, str]] = {region: {} for region in _names(plan)}
    for (source, _), route in sorted(hops(plan).items(), key=lambda each: len(each[1])):
        for before, region in route:
            if region not in {source, *trees[source]}:
                trees[source][region] = before
    return trees


def _names(plan: Plan) -> list[str]:
    return [region.name for region in plan.regions]


def _protocol(plan: Plan) -> str:
    return STATIC if plan.routing is None else plan.routing.protocol


def _edges(plan: Plan) -> list[RouteEdge]:
    return [
        RouteEdge(link.name, link.a, link.b, link.forward.delay_us, link.backward.delay_us, link.weight)
        for link in plan.links
        if link.kind == "wan"
    ]
