"""The routes between a plan's regions (`topologies.routes`), by the plan's own links."""

from experiments.planned.changes import LinkDirectionName
from experiments.planned.plan import LinkPlan, Plan
from topologies.routes import Hop, RouteEdge, hop_edges, next_edges, routes


def next_links(plan: Plan) -> dict[str, dict[str, LinkPlan]]:
    """Return, for each region, the WAN link towards each other region that it can reach."""
    links = {link.name: link for link in plan.links}
    table = next_edges(_names(plan), _edges(plan))
    return {
        source: {target: links[edge.name] for target, edge in row.items()} for source, row in table.items()
    }


def carriers(plan: Plan) -> dict[Hop, tuple[LinkPlan, LinkDirectionName]]:
    """Return the WAN link that carries each hop, and its direction; a parallel link may carry none."""
    links = {link.name: link for link in plan.links}
    found = {}
    for hop, edge in hop_edges(_edges(plan)).items():
        forward = hop == (edge.a, edge.b)
        found[hop] = links[edge.name], LinkDirectionName.FORWARD if forward else LinkDirectionName.BACKWARD
    return found


def hops(plan: Plan) -> dict[Hop, tuple[Hop, ...]]:
    """Return the route between any two connected regions, hop by hop."""
    return routes(_names(plan), _edges(plan))


def _names(plan: Plan) -> list[str]:
    return [region.name for region in plan.regions]


def _edges(plan: Plan) -> list[RouteEdge]:
    return [
        RouteEdge(link.name, link.a, link.b, link.forward.delay_us, link.backward.delay_us, link.weight)
        for link in plan.links
        if link.kind == "wan"
    ]
