"""Which links of a run need no middle: those that do nothing to frames, neither at first nor later.

Such a link is one veth pair from end to end. It costs the processor less, and carries no counters. A link
whose side is captured keeps its middle: the capture listens there; so does one that goes on to another
machine: the tunnel is one of its ends.
"""

from testbed.plan import LinkChange, LinkPlan, Plan
from testbed.share import Share, nothing


def links_without_middle(plan: Plan, share: Share) -> tuple[str, ...]:
    """Their names, in the plan's order."""
    tunnelled = {tunnel.link for tunnel in share.tunnels}
    changed = {change.link for change in plan.changes if isinstance(change, LinkChange)}
    captured = {capture.link for capture in plan.captures}
    needed = changed | captured | tunnelled
    return tuple(link.name for link in plan.links if _does_nothing(link) and link.name not in needed)


def _does_nothing(link: LinkPlan) -> bool:
    return all(shape == nothing(shape) for shape in (link.forward, link.backward))
