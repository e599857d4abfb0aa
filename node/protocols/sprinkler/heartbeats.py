"""Heartbeats and silence: a process says in every period that it is there, and gives up who does not.

Advertisements are the heartbeats, on a schedule that does not drift. Proxies, which many wait for, send each
other more of them, without counters; two clients, of which there are many, say that they are there only when
they had nothing else to say for some periods. A peer that has not been heard for `silence_periods`, the last
of them cut short to what lies between two heartbeats, is taken for unreachable and its connection is aborted;
TCP alone would notice only after its own, much longer, back-off.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from node.core import machine as m
from node.protocols.sprinkler.channel import Channel
from node.protocols.sprinkler.messages import Advertisement, Counter, Role
from node.protocols.sprinkler.parameters import Parameters

ADVERTISE: m.Timer = ("advertise",)
HEARTBEAT: m.Timer = ("heartbeat",)
SILENCE: m.Timer = ("silence",)


class Surroundings(Protocol):
    """What is needed of the process."""

    role: Role
    now_us: int
    parameters: Parameters
    channels: dict[str, Channel]
    rng: m.Randomness

    def counters(self) -> Iterable[Counter]:
        """What this process advertises."""

    def emit(self, effect: m.Effect) -> None:
        """Ask for an effect."""

    def log(self, event: str, level: str = "info", /, **fields: Any) -> None:
        """Write a line in the log."""

    def send(self, channel: Channel, *messages: Any) -> None:
        """Send messages."""

    def drop(self, channel: Channel, reason: str, *, abort: bool = True) -> None:
        """Close a channel from our side and deal with its loss."""


class Heartbeats:
    """One process's own, and those of its peers. `connections`: all, by number, also before HELLO."""

    def __init__(self, node: Surroundings, connections: Mapping[int, Channel]) -> None:
        self._node = node
        self._parameters = node.parameters
        self._connections = connections
        self._silence_at_us = 0  # when the next look for silence is due
        self._advertise_us = 0  # when the next advertisement is due

    def start(self) -> None:
        """The process runs: each begins at its own point of the period."""
        node = self._node
        self._advertise_us = node.now_us + int(node.rng.random() * self._parameters.advertisement_period_us)
        node.emit(m.SetTimer(ADVERTISE, self._advertise_us))
        self._watch_silence(node.now_us + self._shortest_silence_us())

    def stop(self) -> None:
        """The process ends."""
        for timer in (ADVERTISE, HEARTBEAT, SILENCE):
            self._node.emit(m.CancelTimer(timer))

    def timer_fired(self, timer: m.Timer) -> bool:
        """Whether the timer is one of these; if so, what it is for has been done."""
        if timer == ADVERTISE:
            self._advertise()
        elif timer == HEARTBEAT:
            self._beat()
        elif timer == SILENCE:
            self._look_for_silence()
        else:
            return False
        return True

    def _advertise(self) -> None:
        """To everyone, once in a period, on a schedule that does not drift."""
        period_us = self._parameters.advertisement_period_us
        missed = (
            max(0, self._node.now_us - self._advertise_us) // period_us
        )  # after the process was stopped for a while
        self._advertise_us += (missed + 1) * period_us
        self._node.emit(m.SetTimer(ADVERTISE, self._advertise_us))
        advertisement = Advertisement(tuple(self._node.counters()))
        idle_us = (self._parameters.neighbour_periods - 1) * period_us
        for channel in list(self._node.channels.values()):
            if not self._are_neighbours(channel):
                self._node.send(channel, advertisement)
            elif self._node.now_us - channel.sent_us >= idle_us:
                self._node.send(channel, Advertisement(()))
        self._await_beat()

    def _beat(self) -> None:
        """To the other proxies, between advertisements."""
        for channel in list(self._node.channels.values()):
            if self._is_between_proxies(channel):
                self._node.send(channel, Advertisement(()))
        self._await_beat()

    def _await_beat(self) -> None:
        at_us = self._node.now_us + self._parameters.advertisement_period_us // self._parameters.heartbeats
        if self._node.role is Role.PROXY and at_us < self._advertise_us:
            self._node.emit(m.SetTimer(HEARTBEAT, at_us))

    def _is_between_proxies(self, channel: Channel) -> bool:
        return self._node.role is Role.PROXY and channel.role is Role.PROXY

    def _are_neighbours(self, channel: Channel) -> bool:
        """Two clients: what is asked of one that is gone is soon asked of the proxy."""
        return self._node.role is Role.CLIENT and channel.role is Role.CLIENT

    def _shortest_silence_us(self) -> int:
        return self._parameters.silence_us(is_between_proxies=self._node.role is Role.PROXY)

    def _silence_us(self, channel: Channel) -> int:
        """How long this peer may be silent; until it answers our HELLO, as long as an attempt to connect."""
        silence_us = self._parameters.silence_us(is_between_proxies=self._is_between_proxies(channel))
        if not channel.has_answered:
            return max(silence_us, self._parameters.connect_timeout_us)
        return (
            silence_us * self._parameters.neighbour_periods if self._are_neighbours(channel) else silence_us
        )

    def _look_for_silence(self) -> None:
        """Abort connections whose peer has been silent for too long; look again when the next one could be.

        When this comes late, it was us who did not listen: that time is not held against anyone.
        """
        late_us = max(0, self._node.now_us - self._silence_at_us)
        for channel in list(self._connections.values()):
            channel.heard_us += late_us
            if not channel.is_read:
                channel.heard_us = self._node.now_us
            silent_us = self._node.now_us - channel.heard_us
            if silent_us >= self._silence_us(channel):
                self._node.log("peer_silent", "warning", peer=channel.name, silent_ms=silent_us // 1000)
                self._node.drop(channel, "silent")
        ends_us = [channel.heard_us + self._silence_us(channel) for channel in self._connections.values()]
        self._watch_silence(min([*ends_us, self._node.now_us + self._shortest_silence_us()]))

    def _watch_silence(self, at_us: int) -> None:
        self._silence_at_us = at_us
        self._node.emit(m.SetTimer(SILENCE, at_us))
