"""A Meghdoot peer: CAN and all of Meghdoot's layers in one process, as a machine without I/O.

Every process is a peer of the overlay, whatever its role; the plan determines what it publishes and
subscribes to.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import IPv4Address

from node.core import machine as m
from node.core.content import content_measures
from node.core.content.content import attributes_of
from node.core.content.event_values import EventValues
from node.core.deliveries import RecordKind
from node.core.peers.peer_pool import PeerPool, SendTo, gathered
from node.core.specification import NodeSpec
from node.core.specification import PlannedSubscription as Asked
from node.protocols.can.overlay import Can
from node.protocols.meghdoot.broker import Broker
from node.protocols.meghdoot.messages import Notify
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import payload_of
from node.protocols.meghdoot.publishing.propagation import VisitCounts
from node.protocols.meghdoot.transport import OverlayTransport
from node.protocols.overlay.node import OverlayNode
from node.protocols.reachability.nodes import ID_BITS, NodeHandle, id_of

FLUSH: m.Timer = ("flush",)
LEAVE_US = 5_000_000
"""Maximum time that a leaving peer waits until others have its data, in microseconds."""
MEASURED_US = 1_000_000
PUBLISHER = "publisher"


def pooled(spec: NodeSpec, rng: m.Randomness) -> PeerPool:
    """Return a peer for a network with connections."""
    node = MeghdootNode(spec, rng)
    return PeerPool(node, node.parameters.port)


class MeghdootNode(OverlayNode):
    """One process. told, confirmed: callbacks for events and for numbers of confirmed subscriptions."""

    def __init__(self, spec: NodeSpec, rng: m.Randomness) -> None:
        self.parameters = MeghdootParameters(**spec.parameters)
        super().__init__(
            spec,
            tick_interval_us=self.parameters.tick_us,
            pause_us=max(1, self.parameters.probes - 1) * self.parameters.probe_timeout_us,
        )
        self._is_flushing = False
        self.told: Callable[[Notify], None] = lambda message: None
        self.confirmed: Callable[[int], None] = lambda number: None
        self._leaving_until_us: int | None = None
        self._measured_us = 0
        self._delivered: Counter[int] = Counter()
        self._counts = VisitCounts()
        # each process generation has another id even with the same `rng`
        life = id_of(f"{spec.name} {spec.start}")
        own = NodeHandle(rng.randrange(1 << ID_BITS) ^ life, int(IPv4Address(spec.address)))
        attributes = attributes_of(spec.workload)
        self.post = OverlayTransport(own.address, self._emit)
        self.broker = Broker(
            self.parameters,
            attributes,
            self.post,
            life=spec.start,
            interest=self._interest,
            deliver=self._deliver,
        )
        self._answers = self.broker.answers
        self.broker.publisher.acknowledged = self._acknowledged
        can = Can(own, 2 * len(attributes), self.parameters, rng, emit=self._emit, application=self.broker)
        self.overlay = self.can = self.post.can = can
        self.broker.held.watch(can.claims)
        streams = spec.published_by(spec) if spec.role == PUBLISHER else ()
        self._stream = streams[0] if streams else None
        self._values = EventValues.for_publisher(spec) if streams else None

    def _start(self, given: m.Started, now_us: int) -> None:
        self.can.start(self._contacts(), now_us, is_direct=self.parameters.join == "by-load")

    def _leave(self, now_us: int) -> None:
        """Give away all zones first (4.3), unless all other peers stop as well."""
        self._leaving_until_us = now_us
        if self.can.is_active and not self._schedule.is_stopped:
            self._leaving_until_us = now_us + LEAVE_US
            self.broker.subscriber.leave()
            self.can.leave()

    def _finish_if_left(self, now_us: int) -> None:
        """Stop when others have all data of this peer, or after a timeout."""
        until_us = self._leaving_until_us
        has_left = self.can.has_left and self.broker.keeping.stores.is_silent
        if until_us is not None and (has_left or now_us >= until_us):
            self._leaving_until_us = None
            self._effects.append(m.Finished())

    def _complete(self, now_us: int) -> None:
        self._settle()
        if self._leaving_until_us is not None:
            self._finish_if_left(now_us)
        self._gather()

    def _settle(self) -> None:
        """Process messages of this peer to itself, and schedule the sending of answers."""
        here = self.post.here
        while here:
            self.broker.receive(self.post.own, here.popleft())
        if not self._is_flushing and self._answers:
            self._is_flushing = True
            self._effects.append(m.SetTimer(FLUSH, self.post.now_us + self.parameters.confirm_us))

    def _gather(self) -> None:
        """Combine all messages to each peer into one effect, together with pending answers."""
        if self._is_flushing or self.can.has_answers:
            for address in dict.fromkeys(each.address for each in self._effects if type(each) is SendTo):
                if address not in self.can.reach.relays_of:
                    self.can.acknowledge(address)
                    self._answers.flush_to(address)
        if len(self._effects) > 1:
            self._effects = gathered(self._effects)

    def progress(self) -> m.NodeProgress:
        """See `node.core.machine.Machine`."""
        published = {each.stream: each.last for each in self.broker.publisher.publications.values()}
        is_silent = self._schedule.is_stopped and self.broker.publisher.is_silent
        return m.NodeProgress(published, dict(self._delivered), is_silent)

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        self.can.claims.check()
        self.broker.publisher.check()
        self.broker.keeping.stores.check()
        assert not self.post.here, "a message of the peer to itself is unprocessed"

    # --- Time

    def _work(self, now_us: int) -> None:
        for due in self._schedule.due_subscriptions(now_us):
            self.broker.subscriber.subscribe(due)
        self._publish(now_us)
        self.broker.tick()
        self._measure(now_us)

    def _timer(self, timer: m.Timer) -> None:
        if timer == FLUSH:
            self._is_flushing = False
            self._answers.flush()

    def _tick_again(self, now_us: int) -> None:
        self._note_lateness(now_us)
        super()._tick_again(now_us)

    def _has_paused(self, now_us: int) -> bool:
        """See `OverlayNode`. Peers that know this one to be late wait longer."""
        return self._pause_at_us + self.post.own_late_us < now_us

    def _wake(self, now_us: int) -> None:
        self._note_lateness(now_us)
        super()._wake(now_us)
        if self.can.is_active and self.parameters.heartbeat_us:
            self._emit(m.Log("woke", {}))
            self.broker.resumed()

    def _note_lateness(self, now_us: int) -> None:
        """Record a tick that is late by more than the tick interval: this peer lacks processor time."""
        late_us = now_us - self._tick_us
        if self._tick_us and late_us > self.parameters.tick_us:
            self.post.lateness.note(late_us, now_us)
            self.can.reach.lateness.note(late_us, now_us)

    def _measure(self, now_us: int) -> None:
        """Emit the load once per second, also if there was none."""
        if now_us < self._measured_us + MEASURED_US:
            return
        self._measured_us = now_us
        counts, before = replace(self.broker.propagation.counts), self._counts
        self._counts = counts
        values = {
            "visits": counts.visits - before.visits,
            "repeats": counts.repeats - before.repeats,
            "subscriptions": len(self.broker.keeping.subscriptions),
        }
        self._emit(m.Measure("load", values))

    def _publish(self, now_us: int) -> None:
        if self._stream is None or self._values is None:
            return
        due = self._schedule.due_events(now_us) - self._published
        while due > 0 and self.broker.publisher.has_room(self._stream):
            values = self._values.one(self._published)
            self.publish(self._stream, values, self._spec.workload["event_size_bytes"])
            self._published += 1
            due -= 1

    def publish(self, stream: int, values: Sequence[float], size_bytes: int) -> int:
        """Publish an event; return its number."""
        payload = payload_of(values, size_bytes)
        seq = self.broker.publisher.publish(stream, payload)
        self._emit(m.Record(RecordKind.PUBLISHED, stream, seq, 1, 1, payload))
        self._emit(content_measures.event(stream, seq, values))
        return seq

    # --- Callbacks of Meghdoot's layers

    def _interest(self, kind: RecordKind, asked: Asked) -> None:
        self._emit(content_measures.interest(kind, self._spec.start, asked))
        if kind == RecordKind.SUBSCRIBED:
            self.confirmed(asked.number)

    def _acknowledged(self, stream: int, seq: int) -> None:
        self._emit(m.Record(RecordKind.ACKNOWLEDGED, stream, seq, 1, 1))

    def _deliver(self, message: Notify) -> None:
        payload = bytes(message.payload)
        self._delivered[message.stream] += 1
        self._emit(m.Record(RecordKind.DELIVERED, message.stream, message.first_seq, 1, 1, payload))
        self.told(message)
