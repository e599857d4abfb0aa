"""How a node reaches the others it knows: directly, or through a third one; and which of them have failed.

A link that is cut makes reachability non-transitive: two nodes hold each other for dead while a third one
sees both. Rings and trees could not agree then. So a probe that has no answer is sent again through relays,
nodes that are known to live (as SWIM asks others to ping, and RON routes round a failure in one hop): whoever
answers through a relay is alive, and is sent everything through it until the direct way works again. A relay
passes on through a relay of its own where it needs one. Only who answers to nobody has failed. Failed ones
are asked again now and then, so that a ring that was divided grows together.

This module knows nothing of rings. What a probe says, and what follows, is its `Watcher`'s.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from node.core import machine as m
from node.core.peer_pool import Address, Forget, PeerEffect, SendTo
from node.protocols.pastry.ids import NodeHandle
from node.protocols.pastry.messages import Ping, Pong, Relay
from node.protocols.pastry.parameters import PastryParameters

RELAY_HOPS_MAX = 4
FAILED_MAX = 64  # nodes that are asked again
AGAIN_MAX = 12  # times `direct_again`: the longest time between asking a failed node again
PINGS_MAX = 1_024
LONG_US = 1 << 60  # longer ago than anything

Told = Callable[[int], None]
"""Is told a round-trip time in microseconds."""


class Watcher(Protocol):
    """Who is told what became of nodes."""

    def probe(self, number: int) -> Any:
        """The message that asks a node whether it lives; its answer names the number."""

    def relays(self) -> Iterable[NodeHandle]:
        """Nodes that may pass something on."""

    def failed(self, node: NodeHandle) -> None:
        """It gave no answer, by any way."""

    def settled(self) -> None:
        """No probe is under way any more."""

    def measured(self, node: NodeHandle, rtt_us: int) -> None:
        """It answered a ping after so long."""


@dataclass(slots=True)
class _Probe:
    node: NodeHandle
    told_by: Address | None
    attempts: int = 0
    is_hope: bool = False  # there may be a better way: nothing waits for its end
    sent_us: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Lost:
    node: NodeHandle
    again_us: int
    wait_us: int


class Reachability:
    """Of one node. `effects` is where it puts what is to be done; `relay_of` has the relays in use."""

    def __init__(
        self,
        own: NodeHandle,
        parameters: PastryParameters,
        rng: m.Randomness,
        effects: Callable[[PeerEffect], None],
        watcher: Watcher,
    ) -> None:
        self.now_us = 0
        self.relay_of: dict[Address, Address] = {}
        self._own = own
        self._parameters = parameters
        self._rng = rng
        self._emit = effects
        self._watcher = watcher
        self._probes: dict[Address, _Probe] = {}
        self._pings: dict[int, tuple[NodeHandle, int, Told | None]] = {}
        self._lost: dict[Address, _Lost] = {}
        self._heard_us: dict[Address, int] = {}
        self._direct_us: dict[Address, int] = {}  # as `_heard_us`, without a relay
        self._confirmed_us: dict[Address, int] = {}  # when a node was asked last
        self._direct_again_us = 0
        self._number = 0

    # --- Sending

    def send(self, address: Address, *messages: Any) -> None:
        """To a node, in order, through its relay if it needs one."""
        relay = self.relay_of.get(address)
        if relay is None:
            self._emit(SendTo(address, messages))
        else:
            own = self._own.address
            self._emit(SendTo(relay, tuple(Relay(own, address, 0, message) for message in messages)))

    def answer(self, address: Address, relay: Address | None, message: Any) -> None:
        """The way that the question came, for that is what is asked."""
        if relay is None:
            self._emit(SendTo(address, (message,)))
        else:
            self._emit(SendTo(relay, (Relay(self._own.address, address, 0, message),)))

    def pass_on(self, relay: Relay) -> None:
        """Something that another node does not reach itself."""
        if relay.hops < RELAY_HOPS_MAX:
            following = self.relay_of.get(relay.target, relay.target)
            onward = Relay(relay.source, relay.target, relay.hops + 1, relay.message)
            self._emit(SendTo(following, (onward,)))

    # --- Hearing

    def heard(self, address: Address, relay: Address | None) -> None:
        """Something came from a node, maybe through a relay."""
        self._heard_us[address] = self.now_us
        if relay is None:
            self._direct_us[address] = self.now_us
        elif self.now_us - self._direct_us.get(address, -LONG_US) > self._parameters.probe_timeout_us:
            self.relay_of.setdefault(address, relay)

    def is_silent(self, address: Address, since_us: int) -> bool:
        """Whether nothing came from a node for so long, or ever."""
        return self.now_us - self._heard_us.get(address, -since_us) >= since_us

    def answered(self, node: NodeHandle, number: int, relay: Address | None) -> None:
        """A probe's answer came."""
        self._lost.pop(node.address, None)
        probe = self._probes.pop(node.address, None)
        if probe is None:
            return
        if relay is None:
            self.relay_of.pop(node.address, None)
            if number in probe.sent_us:
                self._watcher.measured(node, self.now_us - probe.sent_us[number])
        else:
            self.relay_of[node.address] = relay
        if not self.is_probing:
            self._watcher.settled()

    # --- Probes

    @property
    def is_probing(self) -> bool:
        """Whether any probe is under way that something waits for."""
        return any(not probe.is_hope for probe in self._probes.values())

    def is_suspect(self, node: NodeHandle) -> bool:
        """Whether it is being probed."""
        probe = self._probes.get(node.address)
        return probe is not None and not probe.is_hope

    def probe(self, node: NodeHandle, told_by: Address | None = None) -> None:
        """Find out whether a node lives; who told of it is the first relay that is tried."""
        known = self._probes.get(node.address)
        if node.address == self._own.address or (known is not None and not known.is_hope):
            return
        probe = self._probes[node.address] = _Probe(node, told_by)
        self._attempt(probe)

    def _attempt(self, probe: _Probe) -> None:
        address = probe.node.address
        probe.attempts += 1
        self._number += 1
        probe.sent_us[self._number] = self.now_us
        message = self._watcher.probe(self._number)
        self._emit(SendTo(address, (message,)))
        for relay in self._relays(probe):
            self._emit(SendTo(relay, (Relay(self._own.address, address, 0, message),)))
        timer = ("probe", str(address))
        self._emit(m.SetTimer(timer, self.now_us + self._parameters.probe_timeout_us))

    def _relays(self, probe: _Probe) -> list[Address]:
        address, known = probe.node.address, self.relay_of.get(probe.node.address)
        chosen = [] if known is None else [known]
        if probe.attempts > 1:
            if probe.told_by is not None:
                chosen.append(probe.told_by)
            rest = sorted({node.address for node in self._watcher.relays()} - {address, *chosen})
            wanted = self._parameters.relays << (probe.attempts - 2)
            while rest and len(chosen) < wanted:
                chosen.append(rest.pop(self._rng.randrange(len(rest))))
        return list(dict.fromkeys(chosen))

    def timed_out(self, address: Address) -> None:
        """A probe's time is over."""
        probe = self._probes.get(address)
        if probe is None:
            return
        if probe.attempts < self._parameters.probes:
            if probe.attempts == 1:
                self._emit(Forget(address))  # what waits there would come late, before everything new
            self._attempt(probe)
            return
        del self._probes[address]
        self.relay_of.pop(address, None)
        self._emit(Forget(address))
        self._bury(probe.node)
        if probe.is_hope and all(node != probe.node for node in self._watcher.relays()):
            return
        self._watcher.failed(probe.node)
        if not self.is_probing:
            self._watcher.settled()

    def _bury(self, node: NodeHandle) -> None:
        known = self._lost.pop(node.address, None)
        again_us = self._parameters.direct_again_us
        wait_us = min(known.wait_us * 2, again_us * AGAIN_MAX) if known else again_us
        self._lost[node.address] = _Lost(node, self.now_us + wait_us, wait_us)
        while len(self._lost) > FAILED_MAX:
            del self._lost[next(iter(self._lost))]

    def _ask_again(self, node: NodeHandle, attempts: int) -> None:
        """Whether there is a better way to a node, or any; meanwhile the known one is used."""
        if node.address not in self._probes:
            self._probes[node.address] = probe = _Probe(node, None, attempts, is_hope=True)
            self._attempt(probe)

    # --- Pings

    def ping(self, node: NodeHandle, told: Told | None = None) -> None:
        """Measure how far away a node is, directly; without an answer nobody is told."""
        if len(self._pings) < PINGS_MAX:
            self._number += 1
            self._pings[self._number] = node, self.now_us, told
            self._emit(SendTo(node.address, (Ping(self._own.id, self._number),)))

    def confirm(self, node: NodeHandle) -> None:
        """Ask a node again that answered directly some time ago, and is not known to need a relay."""
        address, period_us = node.address, self._parameters.confirm_us
        quiet_us = self.now_us - self._confirmed_us.get(address, -period_us)
        if address not in self.relay_of and quiet_us >= period_us:
            self._confirmed_us[address] = self.now_us  # or else its probe tells otherwise
            self.ping(node)

    def ponged(self, address: Address, pong: Pong, relay: Address | None) -> None:
        """A ping's answer came."""
        found = self._pings.pop(pong.number, None)
        if found is not None and found[0].address == address and relay is None:
            self.relay_of.pop(address, None)
            node, sent_us, told = found
            self._watcher.measured(node, self.now_us - sent_us)
            if told is not None:
                told(self.now_us - sent_us)

    # --- Now and then

    def tick(self) -> None:
        """Look whether pings were answered, ask failed nodes again, and try direct ways."""
        late_us = self.now_us - self._parameters.probe_timeout_us
        for number in [number for number, (_, sent_us, _) in self._pings.items() if sent_us <= late_us]:
            node, _, _ = self._pings.pop(number)
            if node.address not in self.relay_of:
                self.probe(node)
        for lost in [lost for lost in self._lost.values() if lost.again_us <= self.now_us]:
            self._ask_again(lost.node, max(0, self._parameters.probes - 1))  # once, over most relays
        if self.now_us >= self._direct_again_us:
            self._direct_again_us = self.now_us + self._parameters.direct_again_us
            known = {node.address: node for node in self._watcher.relays()}
            for address in [address for address in self.relay_of if address not in known]:
                del self.relay_of[address]  # we send there no more
            for times in (self._heard_us, self._direct_us, self._confirmed_us):
                for address in [address for address in times if address not in known]:
                    del times[address]
            for address in list(self.relay_of):
                self._emit(Forget(address))
                self._ask_again(known[address], 0)
