"""How a node reaches other nodes, directly or through relays, and which nodes have failed.

A cut link makes reachability non-transitive: two nodes consider each other failed while a third one reaches
both. Rings and trees could not agree then. So a missed node is probed directly and at the same time through
relays, which are known nodes (as SWIM asks others to ping, and RON routes around a failure in one hop). A
node that answers through a relay is alive. If it is not heard directly, or does not answer directly in time,
all messages to it take the relay until the direct way works again. It is notified, since it may receive
direct messages without being heard. If one relay is not enough, as in a ring of regions, relays try further
ones and those that they need themselves; messages carry their whole way, so that none loops. A node has
failed only if it answers through no relay, or if its host reports that no process listens. Failed nodes are
probed again from time to time, so that a partitioned ring reunites; after some time without fading searches,
since a way over `WAY_MAX` relays is otherwise found too rarely. A late timer shows that this node is
slow, a late answer that others are: neither makes a node failed (`lateness`).

This module is independent of the overlay's structure. The `ReachabilityWatcher` supplies the probe and
processes the results.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from node.core import machine as m
from node.core.peers.peer_pool import Address, Forget, PeerEffect, SendTo
from node.protocols.reachability.lateness import Lateness
from node.protocols.reachability.long_messages import LongMessages
from node.protocols.reachability.messages import Ping, Pong, Relay, Unheard
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.numbers import MessageNumbers
from node.protocols.reachability.parameters import ReachabilityParameters

ANSWERED_MAX = 1_024  # maximum of remembered probes
ANSWERS_MAX = 3  # maximum of answers to copies of one probe that came by different ways
FAILED_MAX = 64  # maximum of failed nodes that are probed again
AGAIN_MAX = 12  # maximum interval between probes of a failed node, in units of `direct_again`
PINGS_MAX = 1_024
WAY_MAX = 4  # maximum number of relays between two nodes
FURTHER = 4  # each next relay of a search tries this many times fewer nodes
TO_THE_END = 128  # added to a search that does not fade: each relay tries two nodes or more
LONG_US = 1 << 60  # before any event

OnRoundTrip = Callable[[int], None]
"""Called with a round-trip time in microseconds."""


Relays = tuple[Address, ...]
"""Up to `WAY_MAX` relays to a node, in order."""


class ReachabilityWatcher(Protocol):
    """The overlay's side: it supplies probes and relays and processes the results."""

    def probe(self, number: int) -> Any:
        """Return the probe message; its answer repeats the number."""

    def relays(self) -> Iterable[NodeHandle]:
        """Return nodes that may relay a message."""

    def failed(self, node: NodeHandle) -> None:
        """Process the failure of a node that did not answer by any way."""

    def answered(self) -> None:
        """Continue messages that waited for a probed node, because it is alive."""

    def settled(self) -> None:
        """Process that no probe is pending any more."""

    def measured(self, node: NodeHandle, rtt_us: int) -> None:
        """Process a round-trip time to a node."""


@dataclass(slots=True)
class _PendingProbe:
    node: NodeHandle
    told_by: Address | None
    is_missed: bool  # relays are used from the first attempt on
    is_hope: bool = False  # a failed node is probed again: nothing waits for the result
    # it is alive through these, and nothing waits; a direct answer may still arrive
    relays: Relays | None = None
    attempts: int = 0
    since_us: int = 0
    until_us: int = 0
    sent_us: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Lost:
    node: NodeHandle
    since_us: int
    again_us: int
    wait_us: int
    is_refused: bool  # its host reported that no process listens: relays would not help


@dataclass(slots=True)
class _EventTimes:
    """Times of the last events between this node and another one.

    heard: anything arrived; direct: without a relay; sent: from this node without a relay; returned: the
    direct way worked again; found: relays were found.
    """

    heard_us: int = -LONG_US
    direct_us: int = -LONG_US
    sent_us: int = -LONG_US
    returned_us: int = -LONG_US
    found_us: int = -LONG_US


NEVER = _EventTimes()


def _relay(source: Address, target: Address, way: Relays, search: int, message: Any) -> Relay:
    first, second, third, fourth = (*way, *(0 for _ in range(WAY_MAX - len(way))))
    return Relay(source, target, first, second, third, fourth, search, message)


def _next_search(search: int) -> int:
    """Return the further relays that the next relay of a search may try."""
    return TO_THE_END + max(2, search % TO_THE_END // FURTHER) if search > TO_THE_END else search // FURTHER


class Reachability:
    """Reachability of other nodes from one node. `relays_of` has the relays in use.

    `is_watching`: nodes exchange heartbeats. Otherwise hops are not acknowledged, and times of messages,
    which would take gigabytes in a simulation of many nodes, are not kept; so a message through a relay makes
    this node use the relay, even if direct messages arrived just before.
    """

    def __init__(
        self,
        own: NodeHandle,
        parameters: ReachabilityParameters,
        rng: m.Randomness,
        effects: Callable[[PeerEffect], None],
        watcher: ReachabilityWatcher,
        *,
        is_watching: bool,
    ) -> None:
        self.is_watching = is_watching
        self.now_us = 0
        self.relays_of: dict[Address, Relays] = {}
        self.lateness = Lateness(parameters.probe_timeout_us)
        self.own = own
        self._parameters = parameters
        self._rng = rng
        self._emit = effects
        self._watcher = watcher
        self._probes: dict[Address, _PendingProbe] = {}
        self._pings: dict[int, tuple[Address, int, OnRoundTrip | None]] = {}
        self._failed: dict[Address, _Lost] = {}
        self._times: defaultdict[Address, _EventTimes] = defaultdict(_EventTimes)
        self._long_messages = LongMessages(parameters.probe_timeout_us // 4)
        self._answered: dict[tuple[Address, int], int] = {}  # answers to each probe, oldest first
        # nodes that were sent something through a relay since the last direct attempts
        self._used: set[Address] = set()
        self._direct_again_us = 0
        self._numbers = MessageNumbers()

    @property
    def late_us(self) -> int:
        """Expected lateness of answers, in microseconds."""
        return self.lateness.at(self.now_us)

    @property
    def is_late(self) -> bool:
        """Whether nodes are so late that a missing answer is no evidence of a failure."""
        return self.late_us > self._parameters.probe_timeout_us // 4

    @property
    def patience_us(self) -> int:
        """Timeout of an answer, in microseconds."""
        return self._parameters.probe_timeout_us + self.late_us

    # --- Sending

    def send(self, address: Address, *messages: Any) -> None:
        """Send messages to a node, in order, through relays if necessary."""
        relays = self.relays_of.get(address)
        if relays is None:
            if self.is_watching:
                self._times[address].sent_us = self.now_us
            self._emit(SendTo(address, messages))
        else:
            self._used.add(address)
            self._send_through(relays, address, messages)

    def answer(self, address: Address, relays: Relays | None, message: Any) -> None:
        """Answer the way that the request came, since the request tests that way."""
        if relays is None:
            self._emit(SendTo(address, (message,)))
        else:
            self._send_through(relays, address, (message,))

    def is_to_be_answered(self, address: Address, number: int) -> bool:
        """Return whether a probe is among its first `ANSWERS_MAX` copies, which are answered."""
        times = self._answered.pop((address, number), 0)
        self._answered[address, number] = times + 1
        if len(self._answered) > ANSWERED_MAX:
            del self._answered[next(iter(self._answered))]
        return times < ANSWERS_MAX

    def _send_through(
        self, relays: Relays, address: Address, messages: Sequence[Any], search: int = 0
    ) -> None:
        own = self.own.address
        self._emit(SendTo(relays[0], tuple(_relay(own, address, relays, search, each) for each in messages)))

    def pass_on(self, relay: Relay) -> None:
        """Forward a relayed message; if it is a search, through further relays, too."""
        own, way = self.own.address, relay.way
        if own not in way:
            return
        after = way.index(own) + 1
        self._emit(SendTo(way[after] if after < len(way) else relay.target, (relay,)))
        if relay.search:
            for further in self._further(relay):
                longer, search = (*way, *further), _next_search(relay.search)
                onward = _relay(relay.source, relay.target, longer, search, relay.message)
                self._emit(SendTo(further[0], (onward,)))

    def _further(self, relay: Relay) -> list[Relays]:
        """Return the further relays of a search: those that this node needs itself, and random ones."""
        known, passed = self.relays_of.get(relay.target, ()), {relay.source, relay.target, *relay.way}
        fits = known and len(relay.way) + len(known) <= WAY_MAX and passed.isdisjoint(known)
        wanted = relay.search % TO_THE_END if len(relay.way) < WAY_MAX else 0
        others = self._some_nodes(wanted, passed.union(known[:1] if fits else ()))
        return [*([known] if fits else ()), *((other,) for other in others)]

    def _some_nodes(self, count: int, without: Container[Address]) -> list[Address]:
        """Return random relays among the nodes that are reached directly."""
        known = sorted({node.address for node in self._watcher.relays()} - self.relays_of.keys())
        rest = [address for address in known if address not in without and address != self.own.address]
        wanted = max(0, min(count, len(rest)))
        return [rest.pop(self._rng.randrange(len(rest))) for _ in range(wanted)]

    # --- Receiving

    def received_from(self, address: Address, relays: Relays | None) -> None:
        """Record that messages arrived from a node, directly or through relays."""
        times = self._times[address]
        times.heard_us = self.now_us
        lost = self._failed.get(address) if self._failed else None
        if lost is not None:
            lost.again_us = min(lost.again_us, self.now_us + self._parameters.direct_again_us)
        if relays is None:
            times.direct_us = self.now_us
        elif not (address in self.relays_of or self._is_heard_directly(address) or self._is_back(address)):
            self._go_through(relays, address)

    def part_came(self, address: Address) -> None:
        """Record that part of a message arrived, and notify the sender if due (`LongMessages`)."""
        if self._long_messages.part_came(address, self.now_us):
            self._emit(SendTo(address, (Pong(self.own.id, 0, 0),)))

    def is_receiving(self, address: Address) -> bool:
        """Return whether part of a long message from the node arrived lately."""
        return self._long_messages.received_part(address, self.now_us - self.patience_us)

    def is_coming(self, address: Address) -> bool:
        """Return whether the node reported lately that parts of a message from here arrive."""
        return self._long_messages.is_coming(address, self.now_us - self.patience_us)

    def unheard(self, address: Address, relays: Relays) -> None:
        """Use relays to a node that reports, through them, that it does not receive direct messages."""
        if address not in self.relays_of:
            self._go_through(relays, address)

    def is_silent(self, address: Address, since_us: int) -> bool:
        """Return whether nothing arrived from the node within `since_us`, extended by the lateness."""
        since_us += self.late_us
        return self.now_us - self._times.get(address, NEVER).heard_us >= since_us

    def has_sent(self, address: Address, since_us: int) -> bool:
        """Return whether something was sent to the node directly within `since_us`."""
        return self.now_us - self._times.get(address, NEVER).sent_us < since_us

    def has_way_since(self, address: Address, since_us: int) -> bool:
        """Return whether the node is reached through relays that were found after the given time."""
        return address in self.relays_of and self._times.get(address, NEVER).found_us > since_us

    def is_failed(self, address: Address) -> bool:
        """Return whether the node is known as failed."""
        return address in self._failed

    def lately_silent(self, within_us: int) -> list[NodeHandle]:
        """Return nodes that failed within the time but may be alive, since their hosts did not refuse."""
        return [
            lost.node
            for lost in self._failed.values()
            if not lost.is_refused and self.now_us - lost.since_us < within_us
        ]

    def _is_back(self, address: Address) -> bool:
        """Return whether the direct way works again, though the other may not have tried it yet."""
        back_us = self.now_us - self._times.get(address, NEVER).returned_us
        return back_us <= self._parameters.direct_again_us

    def _is_heard_directly(self, address: Address) -> bool:
        quiet_us = self.now_us - self._times.get(address, NEVER).direct_us
        return quiet_us <= self.patience_us

    def _go_through(self, relays: Relays, address: Address) -> None:
        if self.relays_of.get(address) != relays:
            further = {"further": list(relays[1:])} if len(relays) > 1 else {}
            self._emit(m.Log("relay", {"peer": address, "relay": relays[0], **further}))
            self.relays_of[address] = relays
            self._times[address].found_us = self.now_us
            self._used.add(address)

    def _go_directly(self, address: Address) -> None:
        if self.relays_of.pop(address, None) is not None:
            self._times[address].returned_us = self.now_us
            self._emit(m.Log("no_relay", {"peer": address}))

    def answered(self, node: NodeHandle, number: int, relays: Relays | None) -> None:
        """Process the answer to a probe, which came the way of the probe."""
        address = node.address
        self._failed.pop(address, None)
        probe = self._probes.get(address)
        if relays is None and probe is not None and number in probe.sent_us:
            took_us = self.now_us - probe.sent_us[number]
            self.lateness.note(took_us - self._parameters.probe_timeout_us, self.now_us)
        if relays is None:
            self._go_directly(address)
            self._probes.pop(address, None)
            if probe is not None and number in probe.sent_us:
                self._watcher.measured(node, self.now_us - probe.sent_us[number])
        elif probe is not None and probe.relays is None:
            probe.relays = relays
            if not (self.is_late or self._is_heard_directly(address)):
                self._go_through(relays, address)
        else:
            return
        if probe is not None:
            self._watcher.answered()
            self._settle()

    # --- Probes

    @property
    def is_probing(self) -> bool:
        """Whether a message waits for a pending probe."""
        return any(not (probe.is_hope or probe.relays is not None) for probe in self._probes.values())

    def is_suspect(self, node: NodeHandle) -> bool:
        """Return whether the node is being probed and has not answered yet."""
        probe = self._probes.get(node.address)
        return probe is not None and not (probe.is_hope or probe.relays is not None)

    def probe(self, node: NodeHandle, told_by: Address | None = None, *, is_missed: bool = False) -> None:
        """Probe a node; `told_by` is the first relay to try.

        is_missed: an expected message of the node did not arrive.
        """
        known = self._probes.get(node.address)
        if node.address == self.own.address:
            return
        if known is None or known.is_hope:
            probe = self._probes[node.address] = _PendingProbe(node, told_by, is_missed)
            self._attempt(probe)
        elif is_missed and not known.is_missed and known.attempts == 1:
            known.is_missed = True
            self._ask_relays(known, self._watcher.probe(self._number_of(known)))

    def probe_again(self, node: NodeHandle) -> None:
        """Probe a node whose connection, and with it a pending probe, was lost."""
        known = self._probes.get(node.address)
        if known is None or known.is_hope:
            self.probe(node)
        else:
            self._emit(SendTo(node.address, (self._watcher.probe(self._number_of(known)),)))

    def _number_of(self, probe: _PendingProbe) -> int:
        number = self._numbers.following(self.now_us)
        probe.sent_us[number] = self.now_us
        return number

    def _attempt(self, probe: _PendingProbe) -> None:
        address = probe.node.address
        probe.attempts += 1
        message = self._watcher.probe(self._number_of(probe))
        self._emit(SendTo(address, (message,)))
        self._ask_relays(probe, message)
        self._wait_for(probe)

    def _ask_relays(self, probe: _PendingProbe, message: Any) -> None:
        address = probe.node.address
        known = self.relays_of.get(address)
        if known is not None:
            self._send_through(known, address, (message,))
        search = 0 if probe.attempts == 1 else self._parameters.relays
        lost = self._failed.get(address)
        if search and lost is not None and lost.wait_us >= self._parameters.direct_again_us * AGAIN_MAX:
            search += TO_THE_END
        for relay in self._relays(probe):
            self._send_through((relay,), address, (message,), search)

    def _relays(self, probe: _PendingProbe) -> list[Address]:
        """Return the relays for a probe: the informant, the one used most, and random ones."""
        if probe.attempts == 1 and (self.is_late or not probe.is_missed):
            return []
        useful = Counter(relays[0] for relays in self.relays_of.values())
        chosen = [probe.told_by, *(relay for relay, _ in useful.most_common(1))]
        unfit = {probe.node.address, self.own.address}
        relays = [each for each in dict.fromkeys(chosen) if each is not None and each not in unfit]
        return relays + self._some_nodes(self._parameters.relays - len(relays), unfit.union(relays))

    def timed_out(self, address: Address) -> None:
        """Process the timeout of a probe."""
        probe = self._probes.get(address)
        if probe is None:
            return
        if self.now_us > probe.until_us + self._parameters.probe_timeout_us // 4:
            self.lateness.note(self.now_us - probe.until_us, self.now_us)
            self._wait_for(probe)  # this node is slow: the answer may already be here
        elif self.now_us < self._deadline_us(probe):
            self._wait_for(probe)  # other nodes turned out to be slow
        elif self.is_coming(address):
            self._wait_for(probe)  # the probe is queued behind a long message
        elif probe.relays is not None:
            del self._probes[address]
            self._go_through(probe.relays, address)
            self._send_through(probe.relays, address, (Unheard(self.own.id),))
        elif probe.attempts < self._parameters.probes:
            self._attempt(probe)
        else:
            self._give_up(probe)

    def _deadline_us(self, probe: _PendingProbe) -> int:
        """Return the end of the wait by the current estimate of lateness."""
        return probe.since_us + self.patience_us - self._parameters.probe_timeout_us // 4

    def _wait_for(self, probe: _PendingProbe) -> None:
        probe.since_us, probe.until_us = self.now_us, self.now_us + self.patience_us
        self._emit(m.SetTimer(("probe", str(probe.node.address)), probe.until_us))

    def refused(self, address: Address) -> None:
        """End a probe, since the node's host answered that no process listens."""
        probe = self._probes.get(address)
        if probe is not None and probe.relays is None:
            self._give_up(probe, is_refused=True)

    def left(self, node: NodeHandle) -> None:
        """Process the goodbye of a node, without a probe."""
        self._probes.pop(node.address, None)
        self.relays_of.pop(node.address, None)
        self._emit(Forget(node.address))
        self._emit(m.Log("goodbye", {"peer": node.address}))
        self._watcher.failed(node)
        self._settle()

    def _give_up(self, probe: _PendingProbe, *, is_refused: bool = False) -> None:
        address = probe.node.address
        del self._probes[address]
        self.relays_of.pop(address, None)
        self._emit(Forget(address))
        self._remember_failed(probe.node, is_refused=is_refused)
        if not probe.is_hope or any(node == probe.node for node in self._watcher.relays()):
            self._emit(m.Log("failed", {"peer": address}))
            self._watcher.failed(probe.node)
            self._settle()

    def _settle(self) -> None:
        if not self.is_probing:
            self._watcher.settled()

    def _remember_failed(self, node: NodeHandle, *, is_refused: bool) -> None:
        known = self._failed.pop(node.address, None)
        again_us = self._parameters.direct_again_us
        wait_us = min(known.wait_us * 2, again_us * AGAIN_MAX) if known else again_us
        since_us = known.since_us if known else self.now_us
        self._failed[node.address] = _Lost(node, since_us, self.now_us + wait_us, wait_us, is_refused)
        while len(self._failed) > FAILED_MAX:
            del self._failed[next(iter(self._failed))]

    # --- Round-trip times

    def ping(self, address: Address, on_rtt: OnRoundTrip | None = None) -> None:
        """Measure the direct round-trip time to a node; without an answer `on_rtt` is not called."""
        if len(self._pings) < PINGS_MAX:
            number = self._numbers.following(self.now_us)
            self._pings[number] = address, self.now_us, on_rtt
            self._emit(SendTo(address, (Ping(self.own.id, number),)))

    def ping_back(self, address: Address) -> int:
        """Return the number of a ping to send with a PONG; 0: none."""
        if len(self._pings) >= PINGS_MAX:
            return 0
        number = self._numbers.following(self.now_us)
        self._pings[number] = address, self.now_us, None
        return number

    def ponged(self, address: Address, pong: Pong, relays: Relays | None) -> None:
        """Process the answer to a ping, and answer a ping in it. Number 0: see `Pong`."""
        if not pong.number and relays is None:
            self._long_messages.notified(address, self.now_us)
        if pong.back and relays is None:
            self._emit(SendTo(address, (Pong(self.own.id, pong.back, 0),)))
        asked, sent_us, on_rtt = self._pings.pop(pong.number, (None, 0, None))
        if asked == address and relays is None:
            self._go_directly(address)
            self._watcher.measured(NodeHandle(pong.id, address), self.now_us - sent_us)
            if on_rtt is not None:
                on_rtt(self.now_us - sent_us)

    # --- Periodic work

    def tick(self) -> None:
        """Probe failed nodes again, and try direct ways."""
        sent_by_us = self.now_us - self.patience_us
        for number in [number for number, (_, sent_us, _) in self._pings.items() if sent_us <= sent_by_us]:
            del self._pings[number]
        for lost in [lost for lost in self._failed.values() if lost.again_us <= self.now_us]:
            self._probe_failed(lost)
        if self.now_us >= self._direct_again_us:
            self._direct_again_us = self.now_us + self._parameters.direct_again_us
            self._try_directly()

    def _probe_failed(self, lost: _Lost) -> None:
        """Probe a failed node once, through most relays; first directly if its host refused."""
        node = lost.node
        if node.address not in self._probes:
            attempts = 0 if lost.is_refused else max(0, self._parameters.probes - 1)
            probe = _PendingProbe(node, None, is_missed=False, is_hope=True, attempts=attempts)
            self._probes[node.address] = probe
            self._attempt(probe)

    def _try_directly(self) -> None:
        """Ping all nodes that are reached through relays; the relays stay in use meanwhile."""
        known = {node.address for node in self._watcher.relays()}
        for address in [address for address in self.relays_of if address not in self._used | known]:
            del self.relays_of[address]
        self._used.clear()
        kept = known | self.relays_of.keys()
        for address in self._times.keys() - kept:
            del self._times[address]
        for address in list(self.relays_of):
            if not self._is_heard_directly(address):
                self._emit(Forget(address))  # messages queued on an old connection would keep it busy
            self.ping(address)
