"""Common part of all processes of Sprinkler: HELLO, advertisements, refusals, publishing.

Every connection starts with HELLO in both directions (`node.core.peers.peering`), then both sides advertise
at once and from then on once in a period. Advertisements are the heartbeats, on a schedule that does not
drift. Proxies, on which many processes depend, send each other additional ones, without counters; the more
numerous clients send each other heartbeats only if they had nothing else to send for some periods. A peer
counts as unreachable if it has not been heard for `silence_periods`; the last period is shortened to the
interval of heartbeats.

`takes` maps each role and message type to a method. Any other message is answered with REFUSED. Subclasses
define that table and the hooks.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.errors import RemoteProtocolError
from node.core.message_layout import wire_name
from node.core.peers.dialing import Pauses
from node.core.peers.peering import PeeringLimits, PeeringMachine
from node.core.specification import NodeSpec
from node.protocols.sprinkler.chain.configurations import Chains
from node.protocols.sprinkler.messages import (
    CODEC,
    FINAL_REFUSALS,
    Advertisement,
    Configuration,
    Counter,
    Hello,
    Publish,
    Published,
    Refusal,
    Refused,
    Role,
)
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.publishing.publisher import StreamPublisher

ADVERTISE: m.Timer = ("advertise",)
HEARTBEAT: m.Timer = ("heartbeat",)
RETRY = "retry"  # first word of a stream's timer


class Participant(PeeringMachine[SprinklerChannel]):
    """A machine of Sprinkler, without its role's own part."""

    role: Role

    def __init__(self, spec: NodeSpec, rng: m.Randomness) -> None:
        self.parameters = parameters = SprinklerParameters(**spec.parameters)
        pauses = Pauses(
            parameters.reconnect_first_us, parameters.reconnect_last_us, parameters.connect_timeout_us
        )
        shortest_us = parameters.silence_us(is_between_proxies=self.role is Role.PROXY)
        burst_bytes, overdraft_bytes = parameters.burst_limit_bytes, parameters.control_limit_bytes
        limits = PeeringLimits(pauses, shortest_us, burst_bytes, overdraft_bytes)
        super().__init__(spec.name, rng, CODEC, limits, SprinklerChannel)
        self.frame_limit_bytes = parameters.frame_limit_bytes
        self.chains = Chains(spec, parameters)
        self.takes: Mapping[tuple[Role | None, type], Callable[[SprinklerChannel, Any], None]] = {}
        self.timers = {ADVERTISE: self._advertise, HEARTBEAT: self._beat, **self.timers}
        self._advertise_us = 0  # when the next advertisement is due
        self._earlier_starts = spec.start
        self.keep_connected(self.chains.targets_for(spec.name))

    # --- Hooks of the roles, besides those of `PeeringMachine`

    def counters(self) -> Iterable[Counter]:
        """Return the counters that this node advertises."""
        return ()

    def refused(self, channel: SprinklerChannel, message: Refused) -> None:
        """Handle a REFUSED from the peer."""

    # --- For the roles

    def begin_session(self, stream: int) -> None:
        """Begin a session of the record of deliveries for this process."""
        self.emit(m.Record(RecordKind.SESSION, stream, self._earlier_starts, 0, 0))

    def learned(self, channel: SprinklerChannel, message: Configuration) -> str | None:
        """Store a CONFIGURATION; return its region, None if it is not newer or not of a service."""
        region = self.chains.served_by(channel.name)
        return region if region is not None and self.chains.learn(region, message) else None

    def publish_unsent(self, channel: SprinklerChannel, publisher: StreamPublisher) -> None:
        """Send closed batches, as far as the channel has room."""
        while channel.open_for_bulk and (batches := publisher.take_unsent(channel.room_bytes)):
            self.send(channel, *batches)

    def acknowledge(
        self, channel: SprinklerChannel, message: Published, publisher: StreamPublisher | None
    ) -> Publish | None:
        """Return the batch of a PUBLISHED; disconnect a peer that acknowledges another one than the next.

        publisher: of the message's stream; None if nothing was published on it. Returns None if the peer was
        disconnected.
        """
        problem = f"PUBLISHED on stream {message.stream}, to which nothing was sent"
        if publisher is not None:
            try:
                return publisher.acknowledge(message)
            except RemoteProtocolError as error:
                problem = str(error)
        self.refuse(channel, Refusal.UNEXPECTED, problem)
        self.drop(channel, "unexpected acknowledgement", abort=False)
        return None

    def reject_publication(self, message: Refused, publisher: StreamPublisher) -> Publish | None:
        """Return the batch of a permanent refusal; None if it is sent again, at the `RETRY` timer.

        A full history may have room later, and another replica may become head.
        """
        if message.code in {Refusal.HISTORY_FULL, Refusal.NOT_HEAD}:
            timer = (RETRY, str(message.stream))
            self.emit(m.SetTimer(timer, self.now_us + self.parameters.retry_us))
        return publisher.reject(message.request) if message.code in FINAL_REFUSALS else None

    def refuse(
        self, channel: SprinklerChannel, code: Refusal, reason: str, stream: int = 0, request: int = 0
    ) -> None:
        """Answer with REFUSED, and log it. stream, request: those of the refused message, if it has them."""
        self.log("refused_peer", "warning", peer=channel.name, code=code.name.lower(), reason=reason)
        self.send(channel, Refused(code, stream, request, reason))

    # --- Hooks of `PeeringMachine`

    def begin(self, given: m.Started) -> None:
        """Start; each process advertises at its own offset in the period."""
        self._advertise_us = self.now_us + int(self.rng.random() * self.parameters.advertisement_period_us)
        self.emit(m.SetTimer(ADVERTISE, self._advertise_us))
        super().begin(given)

    def greeting(self) -> Hello:
        """Return HELLO, with this process's role."""
        return Hello(self.role, self.incarnation, self.name)

    def opened(self, channel: SprinklerChannel) -> None:
        """Advertise to a peer after its HELLO. Extended by the roles."""
        self.send(channel, Advertisement(tuple(self.counters())))

    def take(self, channel: SprinklerChannel, message: Any) -> None:
        """Pass a message to its method in `takes`, if this peer may send it."""
        take = self.takes.get((channel.role, type(message)))
        if take is not None:
            take(channel, message)
        elif type(message) is Refused:
            fields = {"peer": channel.name, "code": message.code, "reason": message.reason}
            self.log("refused_by_peer", "warning", **fields)
            self.refused(channel, message)
        elif type(message) is not Advertisement:  # from others it is only a heartbeat
            self.refuse(channel, Refusal.UNEXPECTED, f"unexpected {wire_name(type(message))}")
            self.drop(channel, "unexpected message", abort=False)

    def reject(self, channel: SprinklerChannel, problem: str, *, is_malformed: bool) -> None:
        """Send REFUSED, before the connection is closed."""
        self.refuse(channel, Refusal.MALFORMED if is_malformed else Refusal.UNEXPECTED, problem)

    def silence_us(self, channel: SprinklerChannel) -> int:
        """Return how long this peer may be silent."""
        silence_us = self.parameters.silence_us(is_between_proxies=self._is_between_proxies(channel))
        patient = channel.has_answered and self._are_neighbours(channel)
        return silence_us * self.parameters.neighbour_periods if patient else silence_us

    # --- Heartbeats

    def _advertise(self) -> None:
        """Advertise to all peers, once in a period, on a schedule that does not drift."""
        period_us = self.parameters.advertisement_period_us
        missed = max(0, self.now_us - self._advertise_us) // period_us  # while the process was stopped
        self._advertise_us += (missed + 1) * period_us
        self.emit(m.SetTimer(ADVERTISE, self._advertise_us))
        advertisement = Advertisement(tuple(self.counters()))
        idle_us = (self.parameters.neighbour_periods - 1) * period_us
        for channel in list(self.channels.values()):
            if not self._are_neighbours(channel):
                self.send(channel, advertisement)
            elif self.now_us - channel.sent_us >= idle_us:
                self.send(channel, Advertisement(()))
        self._await_beat()

    def _beat(self) -> None:
        """Send heartbeats to the other proxies, between advertisements."""
        for channel in list(self.channels.values()):
            if self._is_between_proxies(channel):
                self.send(channel, Advertisement(()))
        self._await_beat()

    def _await_beat(self) -> None:
        at_us = self.now_us + self.parameters.advertisement_period_us // self.parameters.heartbeats
        if self.role is Role.PROXY and at_us < self._advertise_us:
            self.emit(m.SetTimer(HEARTBEAT, at_us))

    def _is_between_proxies(self, channel: SprinklerChannel) -> bool:
        return self.role is Role.PROXY and channel.role is Role.PROXY

    def _are_neighbours(self, channel: SprinklerChannel) -> bool:
        """Return whether both are clients: requests to a lost client soon go to the proxy instead."""
        return self.role is Role.CLIENT and channel.role is Role.CLIENT
