"""What the time of each hop went to: waiting at the sender, sending again, the links' delay, queueing.

A hop is a copy of the event with its place in the tree: the sender had the event from the hop by which it
first came there. The links' delay is what they were configured to have when the message left (LAN, WAN,
LAN), or as much more or less as their jitter explains; what the first byte took beyond that is queueing, and
what the rest of the message took after its first byte is completing (for messages over several packets, and
for the bytes before it in the stream).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from analysis.inspect.following.copies import Asked, Copy, Found
from analysis.inspect.following.segments import Sighting
from analysis.timelines.facts import Facts

Look = Callable[[Copy], tuple[Sighting, ...]]


@dataclass(frozen=True, slots=True)
class Hop:
    """A copy of the event, its place in the tree, and where its time went; None: nobody knows."""

    copy: Copy
    depth: int  # 0: from the driver
    had_ns: int | None  # when the sender had the event
    is_first: bool  # it is how the event first came to the receiver
    asked: Asked | None  # the receiver asked the sender for the stream while the sender had the event
    delay_ns: int  # the links', as configured
    jitter_ns: int  # by which they may keep a packet longer or shorter than that
    sightings: tuple[Sighting, ...]

    @property
    def waited_ns(self) -> int | None:
        """At the sender, until its first byte left."""
        return _between(self.had_ns, self.copy.sent_ns)

    @property
    def resent_ns(self) -> int | None:
        """From the first sending to the one that arrived."""
        return _between(self.copy.sent_ns, self._arriving_ns)

    @property
    def link_ns(self) -> int:
        """What delay and jitter of the links explain of the first byte's way; the delay if it never came."""
        if (crossed_ns := self._crossed_ns) is None:
            return self.delay_ns
        return min(max(crossed_ns, self.delay_ns - self.jitter_ns), self.delay_ns + self.jitter_ns)

    @property
    def queued_ns(self) -> int | None:
        """What the first byte took beyond that."""
        crossed_ns = self._crossed_ns
        return None if crossed_ns is None else crossed_ns - self.link_ns

    @property
    def completing_ns(self) -> int | None:
        """From the first byte to the last, in order."""
        return _between(self.copy.arrived_ns, self.copy.complete_ns)

    @property
    def total_ns(self) -> int | None:
        """From when the sender had it until the receiver had it."""
        return _between(self.copy.t_ns if self.had_ns is None else self.had_ns, self.copy.complete_ns)

    @property
    def sent_again_ns(self) -> tuple[int, ...]:
        """When the sender sent bytes of it that it had sent before."""
        reach, again = -1, []
        for one in self._sendings:
            if one.first <= reach:
                again.append(one.t_ns)
            reach = max(reach, one.last)
        return tuple(again)

    @property
    def _sendings(self) -> list[Sighting]:
        return [one for one in self.sightings if one.place.is_host and one.place.name == self.copy.sender]

    @property
    def _crossed_ns(self) -> int | None:
        """From the sending that arrived until it did."""
        return _between(self._arriving_ns, self.copy.arrived_ns)

    @property
    def _arriving_ns(self) -> int | None:
        """When the first byte left for the time that it arrived: a packet is never early on a link."""
        if self.copy.arrived_ns is None:
            return None
        latest_ns = self.copy.arrived_ns - (self.delay_ns - self.jitter_ns)
        in_time = [one.t_ns for one in self._sendings if one.first == 0 and one.t_ns <= latest_ns]
        return max(in_time, default=self.copy.sent_ns)


def hops(found: Found, facts: Facts, look: Look) -> tuple[Hop, ...]:
    """The tree, depth first, in the order in which branches arrived.

    look: finds a copy's packets.
    """
    everything = [copy for copy in (found.publish, *found.repeated) if copy is not None] + list(found.copies)
    first = _first_copies(everything)
    had = {host: copy.complete_ns for host, copy in first.items()}
    sent_by: dict[str, list[Copy]] = defaultdict(list)
    for copy in everything:
        sent_by[copy.sender].append(copy)
    for copies in sent_by.values():
        copies.sort(key=lambda copy: (copy.complete_ns is None, copy.complete_ns or copy.t_ns))
    roots = [host for host in sent_by if host not in first]
    roots.sort(key=lambda host: min(copy.t_ns for copy in sent_by[host]))

    def below(host: str, depth: int) -> Iterator[Hop]:
        for copy in sent_by.get(host, ()):
            is_first = first.get(copy.receiver) is copy
            asked = _last_asked(copy, had.get(copy.sender), found.asked)
            links = delay_ns(copy, facts), jitter_ns(copy, facts)
            yield Hop(copy, depth, had.get(copy.sender), is_first, asked, *links, look(copy))
            if is_first:
                yield from below(copy.receiver, depth + 1)

    return tuple(hop for root in roots for hop in below(root, 0))


def way_to(host: str, all_hops: Sequence[Hop]) -> list[Hop]:
    """The hops by which the event first came to a host, from the driver on."""
    by_receiver = {hop.copy.receiver: hop for hop in all_hops if hop.is_first}
    way: list[Hop] = []
    while host in by_receiver:
        way.append(by_receiver[host])
        host = by_receiver[host].copy.sender
    return way[::-1]


def _first_copies(copies: Sequence[Copy]) -> dict[str, Copy]:
    """The copy by which the event came to each host; a host never gets it from one that got it later."""
    first: dict[str, Copy] = {}
    whole = [copy for copy in copies if copy.complete_ns is not None]
    for copy in sorted(whole, key=lambda copy: copy.complete_ns or 0):
        first.setdefault(copy.receiver, copy)
    return first


def _between(earlier_ns: int | None, later_ns: int | None) -> int | None:
    return None if earlier_ns is None or later_ns is None else later_ns - earlier_ns


def _last_asked(copy: Copy, had_ns: int | None, asked: Sequence[Asked]) -> Asked | None:
    if had_ns is None or copy.sent_ns is None:
        return None
    between = [
        one
        for one in asked
        if (one.sender, one.receiver) == (copy.receiver, copy.sender)
        and had_ns < one.complete_ns <= copy.sent_ns
    ]
    return max(between, key=lambda one: one.complete_ns, default=None)


def delay_ns(copy: Copy, facts: Facts) -> int:
    """The configured delay from host to host when the message left; 0 for hosts that are not the run's."""
    sender, receiver = facts.hosts.get(copy.sender), facts.hosts.get(copy.receiver)
    if sender is None or receiver is None:
        return 0
    wan_us = facts.delay_us((sender.region, receiver.region), copy.t_ns)
    return 1_000 * (sender.lan_delay_us[0] + wan_us + receiver.lan_delay_us[1])


def jitter_ns(copy: Copy, facts: Facts) -> int:
    """By how much all these links together may be off that."""
    sender, receiver = facts.hosts.get(copy.sender), facts.hosts.get(copy.receiver)
    if sender is None or receiver is None:
        return 0
    wan_us = facts.jitter_us((sender.region, receiver.region), copy.t_ns)
    return 1_000 * (sender.lan_jitter_us[0] + wan_us + receiver.lan_jitter_us[1])
