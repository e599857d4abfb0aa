"""Explains which clients must get the event, which got it last, and why: its path, and the longest delays on
it.

For each hop on that path, only time beyond the links' delay counts as a reason; the delay of a detour counts
for the detour.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from analysis.inspect.following.copies import EventTrace
from analysis.inspect.following.hops import EventHop, route_to
from analysis.inspect.following.tcp_repair import Ending, TcpHistory, fault_at
from analysis.schemas import LOST
from analysis.timelines.delivery.content import ContentFiles
from analysis.timelines.delivery.deliveries import required_sets
from analysis.timelines.delivery.delivery_records import read_files
from analysis.timelines.links.periods import period_at
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory

MENTIONED_SHARE = 0.1  # of the total time; shorter delays are not reported as reasons


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause of delay on the path."""

    took_ns: int
    text: str
    waits: EventHop | None = None  # the hop that waited at its sender or was retransmitted


@dataclass(frozen=True, slots=True)
class PathExplanation:
    """The explanation of an event's path. Times are CLOCK_REALTIME ns."""

    found: EventTrace
    hops: tuple[EventHop, ...]
    last: EventHop | None  # the hop to the last of the expected receivers
    detour: str | None  # why the path to the last receiver avoids the direct link
    reasons: tuple[Reason, ...]  # the longest first
    missing: tuple[str, ...]  # clients that no captured message brought the event to
    clients: frozenset[str] | None = None  # clients that had to get it; None: all
    kept: tuple[EventHop, ...] = ()  # hops to servers that never sent it on, if clients miss it
    ended: Mapping[tuple[str, str], Ending] = field(default_factory=dict)
    """How connections ended that should have carried it, by sender and receiver."""

    @property
    def published_ns(self) -> int | None:
        """The time when its PUBLISH left the driver."""
        return self.found.publish.sent_ns if self.found.publish else None

    @property
    def numbered_ns(self) -> int | None:
        """The time when it was complete at the head, which numbered it."""
        return self.found.publish.complete_ns if self.found.publish else None


def explain_path(
    found: EventTrace,
    all_hops: Sequence[EventHop],
    metadata: RunMetadata,
    expected: Collection[str] | None = None,
    tcp: TcpHistory | None = None,
) -> PathExplanation:
    """Build the explanation. Clients that were absent for part of the run do not count as missing.

    expected: the clients that must get the event; None: all. tcp: to explain waits, and what never arrived.
    """
    clients = set(metadata.clients)
    arrived = [hop for hop in all_hops if hop.is_first and not hop.copy.is_passing]
    got = [
        hop
        for hop in arrived
        if hop.copy.receiver in clients and (expected is None or hop.copy.receiver in expected)
    ]
    last = max(got, key=lambda hop: hop.copy.complete_ns or 0, default=None)
    way = route_to(last.copy.receiver, all_hops) if last else []
    there = {hop.copy.receiver for hop in got}
    start_ns = _start(way)
    missing = tuple(name for name in _missed(metadata, expected) if name not in there)
    kept = tuple(_kept(arrived, all_hops, missing, metadata))
    return PathExplanation(
        found=found,
        hops=tuple(all_hops),
        last=last,
        detour=_detour(way, all_hops, metadata),
        reasons=tuple(_reasons(way, metadata, start_ns, tcp)),
        missing=missing,
        clients=None if expected is None else frozenset(expected),
        kept=kept,
        ended=_ended(all_hops, kept, missing, tcp) if tcp else {},
    )


def _missed(metadata: RunMetadata, expected: Collection[str] | None) -> list[str]:
    return [name for name in metadata.steady_clients if expected is None or name in expected]


def _kept(
    arrived: Sequence[EventHop], all_hops: Sequence[EventHop], missing: Sequence[str], metadata: RunMetadata
) -> Iterator[EventHop]:
    """Yield the hops to servers that never sent the event on, although a client of their region misses it."""
    senders = {hop.copy.sender for hop in all_hops}
    regions = {metadata.hosts[name].region for name in missing}
    for hop in arrived:
        host = metadata.hosts.get(hop.copy.receiver)
        if host and host.region in regions and host.name not in senders and host.name not in metadata.clients:
            yield hop


def _ended(
    all_hops: Sequence[EventHop], kept: Sequence[EventHop], missing: Sequence[str], tcp: TcpHistory
) -> dict[tuple[str, str], Ending]:
    """Return how the connections ended of lost copies, and from servers that kept the event to clients."""
    lost = [hop.copy for hop in all_hops if hop.copy.fate == LOST]
    ends = [((copy.sender, copy.receiver), copy) for copy in lost]
    found = {pair: tcp.ending(pair, copy.t_ns, copy.row) for pair, copy in ends}
    for hop in kept:
        for client in missing:
            pair = (hop.copy.receiver, client)
            found[pair] = tcp.ending(pair, hop.copy.t_ns)
    return {pair: ending for pair, ending in found.items() if ending is not None}


def _start(way: Sequence[EventHop]) -> int:
    return min((hop.copy.t_ns for hop in way), default=0)


def regions_of(way: Sequence[EventHop], metadata: RunMetadata) -> list[str]:
    """Return the regions on a path in order, each entry counted."""
    hosts = [way[0].copy.sender, *(hop.copy.receiver for hop in way)] if way else []
    regions = [metadata.hosts[name].region for name in hosts if name in metadata.hosts]
    return [region for number, region in enumerate(regions) if number == 0 or regions[number - 1] != region]


def _detour(way: Sequence[EventHop], all_hops: Sequence[EventHop], metadata: RunMetadata) -> str | None:
    """Return why the path avoids the direct link between the first and the last region.

    Returns None if it takes the link.
    """
    ends = _ends(way, metadata)
    direct = metadata.direct.get((ends[0], ends[-1])) if ends else None
    if direct is None:
        return None
    link = direct[0]
    lost = [hop for hop in all_hops if hop.copy.fate == LOST and regions_of([hop], metadata) == ends]
    first = min(lost, key=lambda hop: hop.copy.t_ns, default=None)
    entered_ns = _start(way) if first is None else _entered_ns(first, f"{link}@{ends[0]}", metadata)
    crossed_ns = entered_ns + metadata.delay_us((ends[0], ends[1]), entered_ns) * 1_000
    period = period_at(metadata.periods[direct], crossed_ns)
    why = "lost" if first else "not sent"
    if period.up or period.start_ns is None:
        return f"avoids {link}: the event was {why} there although the link was up"
    since = f"the link was {_state(period.state)} at {metadata.seconds(period.start_ns):.3f} s"
    if first and first.copy.t_ns < period.start_ns:
        since = f"{since}, with the event in transit"
    return f"avoids {link}: the event was {why} there, {since}"


def _ends(way: Sequence[EventHop], metadata: RunMetadata) -> list[str]:
    """Return the two regions between which the event may have taken a detour, or none.

    They are those of origin and destination if a host relayed it, or the first and the last if regions relay
    to each other.
    """
    for hop in way:
        if hop.copy.is_passing and hop.copy.source in metadata.hosts and hop.copy.target in metadata.hosts:
            return [metadata.hosts[str(name)].region for name in (hop.copy.source, hop.copy.target)]
    regions = regions_of(way, metadata)
    return [regions[0], regions[-1]] if len(regions) > 2 and not metadata.by_host else []


def _entered_ns(hop: EventHop, near_side: str, metadata: RunMetadata) -> int:
    """Return when its last byte first reached the link.

    This is the capture's time there, or else computed with the sender's LAN delay.
    """
    copy = hop.copy
    seen = [
        one.t_ns
        for one in hop.sightings
        if one.place.name == near_side and one.last == copy.row["length"] - 1
    ]
    lan_ns = metadata.hosts[copy.sender].lan_delay_us[0] * 1_000
    return min(seen, default=(copy.left_ns or copy.t_ns) + lan_ns)


def _state(state: str) -> str:
    return "cut" if state == "blackhole" else state


def _reasons(
    way: Sequence[EventHop], metadata: RunMetadata, start_ns: int, tcp: TcpHistory | None
) -> Iterator[Reason]:
    if not way or way[-1].copy.complete_ns is None:
        return
    whole = way[-1].copy.complete_ns - start_ns
    found = [reason for hop in way for reason in _of_hop(hop, metadata)]
    for reason in sorted(found, key=lambda reason: -reason.took_ns):
        if reason.took_ns >= whole * MENTIONED_SHARE:
            repaired = _repaired(reason.waits, metadata, tcp) if reason.waits and tcp else ""
            yield replace(reason, text=reason.text + repaired)


def _repaired(hop: EventHop, metadata: RunMetadata, tcp: TcpHistory) -> str:
    """Return the loss that TCP repaired during a wait; "" unless a fault dropped the first try."""
    repair = tcp.repair_of(hop)
    fault = repair and fault_at(hop.copy.sender, hop.copy.receiver, repair.first_ns, metadata)
    if not repair or not fault:
        return ""
    first_s, last_s = (metadata.seconds(t_ns) for t_ns in (repair.first_ns, repair.t_ns))
    through = f"try {repair.nth} at {last_s:.3f} s got through"
    return f": try 1 at {first_s:.3f} s was lost during {fault}, {through}"


def _of_hop(hop: EventHop, metadata: RunMetadata) -> Iterator[Reason]:
    copy = hop.copy
    way = f"{copy.sender} -> {copy.receiver}"
    if hop.asked is not None and hop.had_ns is not None and copy.sent_ns is not None:
        at = f"{hop.asked.type}, received at {metadata.seconds(hop.asked.complete_ns):.3f} s"
        asked_ns = hop.asked.complete_ns - hop.had_ns
        yield Reason(asked_ns, f"wait at {copy.sender} until the request of {copy.receiver} ({at})")
        yield Reason(copy.sent_ns - hop.asked.complete_ns, f"{way}: other events were sent first")
    elif hop.waited_ns:
        yield Reason(hop.waited_ns, f"wait at {copy.sender} before sending to {copy.receiver}", hop)
    if hop.resent_ns:
        yield Reason(hop.resent_ns, f"{way}: retransmission ({len(hop.sent_again_ns)} x)", hop)
    if hop.link_ns:
        yield Reason(hop.link_ns, f"{way}: link delay")
    if hop.queued_ns and hop.queued_ns > 0:
        yield Reason(hop.queued_ns, f"{way}: queueing")
    if hop.completing_ns:
        yield Reason(hop.completing_ns, f"{way}: rest of the message and of earlier bytes")


def expected_clients(run: RunDirectory, metadata: RunMetadata, found: EventTrace) -> frozenset[str] | None:
    """Return the clients that must get the event; None if every client must get every event."""
    publishers, subscribers = (
        [(name, run.host_deliveries(name)) for name in metadata.having(trait)]
        for trait in (Trait.PUBLISHER, Trait.SUBSCRIBER)
    )
    published, got = (
        read_files(files, [found.stream], clocks=metadata.clocks) for files in (publishers, subscribers)
    )
    content = ContentFiles.from_run(run, metadata, metadata.clients)
    sets = required_sets(
        metadata.clients, published, got, metadata, content.read(metadata.clocks) if content else None
    )
    if sets is None:
        return None
    must, _ = sets[found.stream]
    return frozenset(
        name for name, (first, end) in must.items() if bool(((first <= found.seq) & (found.seq < end)).any())
    )
