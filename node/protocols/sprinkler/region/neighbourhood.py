"""The members of its region that a node knows: initially the proxy and itself, then clients from views.

Members are in a list that only grows, and are identified by their positions in it; all replicas of the proxy
are one member. In messages a client is its number and its address, so that an initially unknown machine can
join, and be forwarded in views (paper 3.2: a newcomer knows only the proxy). Its name follows from region,
role and number, and is compared with its HELLO by the process that dials it.

A node's view of its region is a small random part of its members, maintained by gossip (paper 3.2,
Membership). When a neighbour's view arrives, the new view is the union of both, from which members are
removed at random until V are left; the sender stays (reinforcement), and so members that crashed, which send
nothing, disappear over time. A client whose view is smaller than V adds the proxy; a newcomer's view is the
proxy alone. Connections and the timing of gossip are decided elsewhere (`dissemination`).
"""

from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address

from node.core.machine import Randomness
from node.core.specification import Member, NodeSpec
from node.protocols.sprinkler.messages import THE_PROXY, Neighbour

MEMBERS_MAX = 100_000  # limit of known members


class Neighbourhood:
    """The known members of one node's region. `own` and `proxy` are positions; -1 means none."""

    __slots__ = ("_places", "_region", "members", "own", "proxy")

    def __init__(self, spec: NodeSpec) -> None:
        here = [member for member in spec.members if member.region == spec.region]
        self.members = [member for member in here if member.role == "proxy" or member.name == spec.name]
        self._region = spec.region
        self._places = {member.name: at for at, member in enumerate(self.members)}
        self.own = self._places.get(spec.name, -1)
        self.proxy = next((at for at, member in enumerate(self.members) if member.role == "proxy"), -1)

    def row(self, place: int) -> Neighbour:
        """Return the row of this member, or of the node itself, for a VIEW."""
        member = self.members[place]
        if member.role == "proxy":
            return Neighbour(THE_PROXY, 0)
        return Neighbour(member.index, int(IPv4Address(member.address)))

    def sender(self, row: Neighbour, name: str) -> int | None:
        """Return the position of a VIEW's sender, its first row; None if the row is another process."""
        place = self.known(row)
        if place is None:
            return None
        member = self.members[place]
        sender_place = self._places.get(name)
        is_proxy = sender_place is not None and self.members[sender_place].role == "proxy"
        return place if member.name == name or (member.role == "proxy" and is_proxy) else None

    def known(self, row: Neighbour) -> int | None:
        """Return the position of a row's member, which is added if unknown; None if the list is full."""
        if row.member == THE_PROXY:
            return self.proxy if self.proxy >= 0 else None
        name = f"{self._region}/client-{row.member}"
        place = self._places.get(name)
        if place is not None:
            return place
        address = readable(row.address)
        if address is None or len(self.members) >= MEMBERS_MAX:
            return None
        place = self._places[name] = len(self.members)
        self.members.append(Member(name, name, self._region, "client", row.member, address))
        return place


def readable(address: int) -> str | None:
    """Return an address as text, or None if it cannot be dialled."""
    try:
        found = IPv4Address(address)
    except AddressValueError:
        return None
    return None if found.is_unspecified or found.is_multicast or found.is_reserved else str(found)


class MembershipView:
    """At most `size` (V) members other than `own`. For the proxy itself, `own == proxy`."""

    __slots__ = ("_own", "_proxy", "_rng", "_size", "members")

    def __init__(self, own: int, proxy: int, size: int, rng: Randomness) -> None:
        self.members: list[int] = [] if own == proxy else [proxy]
        self._own = own
        self._proxy = proxy
        self._size = size
        self._rng = rng

    def received(self, sender: int, theirs: Iterable[int]) -> None:
        """Merge the view of `sender`: union, random removal, reinforcement."""
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
        """Remove an unreachable member."""
        if member in self.members:
            self.members.remove(member)
        self._add_proxy()

    @property
    def is_full(self) -> bool:
        """Whether it has its maximum number of members."""
        return len(self.members) >= self._size

    def neighbour(self) -> int | None:
        """Return a random member of the view; None if it is empty."""
        return self.members[self._drawn(self.members)] if self.members else None

    def _add_proxy(self) -> None:
        if self._own != self._proxy and len(self.members) < self._size and self._proxy not in self.members:
            self.members.append(self._proxy)

    def _drawn(self, members: list[int]) -> int:
        return int(self._rng.random() * len(members))
