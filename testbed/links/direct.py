"""Which links of a run need no middle: those that do nothing to frames, neither at first nor later.

Such a link is one veth pair from end to end. It costs the processor less, and carries no counters. A link
whose side is captured keeps its middle: the capture listens there.
"""

from testbed.plan import LinkChange, LinkPlan, Plan
from topologies.shape import Shape


def links_without_middle(plan: Plan) -> tuple[str, ...]:
    """Their names, in the plan's order."""
    changed = {change.link for change in plan.changes if isinstance(change, LinkChange)}
    captured = {capture.link for capture in plan.captures}
    return tuple(
        link.name for link in plan.links if _does_nothing(link) and link.name not in changed | captured
    )


def _does_nothing(link: LinkPlan) -> bool:
    return all(
        shape == Shape(mtu_bytes=shape.mtu_bytes, reorder=shape.reorder)
        for shape in (link.forward, link.backward)
    )
