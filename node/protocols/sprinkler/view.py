"""A node's view of its region: a small random part of its members, kept by gossip (paper 3.2, Membership).

A member is known by its place in the list of the run's processes. All replicas of the region's proxy count
as one member, `proxy`. When a neighbour's view comes in, the new view is the union of both, from which
members are removed at random until V are left; the sender stays (reinforcement), and so members that
crashed, who send nothing, fade out. A client whose view is smaller than V adds the proxy; a newcomer's
view is the proxy alone. Who is connected with whom, and when to gossip, is not decided here.
"""

from collections.abc import Iterable

from node.core.machine import Randomness


class View:
    """At most `size` (V) members other than `own`. The proxy itself has `own == proxy`."""

    __slots__ = ("_own", "_proxy", "_rng", "_size", "members")

    def __init__(self, own: int, proxy: int, size: int, rng: Randomness) -> None:
        self.members: list[int] = [] if own == proxy else [proxy]
        self._own = own
        self._proxy = proxy
        self._size = size
        self._rng = rng

    def received(self, sender: int, theirs: Iterable[int]) -> None:
        """`sender` told its view: union, random removal, reinforcement."""
        union = dict.fromkeys(self.members)
        union.update(dict.fromkeys(theirs))
        union.pop(self._own, None)
        union.pop(sender, None)
        members = list(union)
        while len(members) >= self._size:
            members[self._drawn(members)] = members[-1]
            members.pop()
        if sender != self._own:
            members.append(sender)
        self.members = members
        self._add_proxy()

    def remove(self, member: int) -> None:
        """`member` cannot be reached."""
        if member in self.members:
            self.members.remove(member)
        self._add_proxy()

    @property
    def is_full(self) -> bool:
        """Whether it has as many members as it may have."""
        return len(self.members) >= self._size

    def neighbour(self) -> int | None:
        """One of the view, at random; None if it is empty."""
        return self.members[self._drawn(self.members)] if self.members else None

    def _add_proxy(self) -> None:
        if self._own != self._proxy and len(self.members) < self._size and self._proxy not in self.members:
            self.members.append(self._proxy)

    def _drawn(self, members: list[int]) -> int:
        return int(self._rng.random() * len(members))
