"""The path by which a region gets each stream: decided at the head, and sent to other regions by the tail.

The head's `sources` decide. A change goes down the chain at once, from each replica to its successor, and
from the tail to the heads of the other regions, which are connected with it. Nothing is sent twice: a channel
receives all paths when it opens, and again when one has changed.

The tail sends the first change at once and those of the next twentieth of an advertisement period together.
Otherwise each new connection of a starting network would cause messages between all regions: 200 regions
would send eight million.
"""

from collections.abc import Mapping
from typing import Protocol

from node.core import machine as m
from node.protocols.sprinkler.messages import Hop, Paths, Role
from node.protocols.sprinkler.publishing.channel import Process, SprinklerChannel
from node.protocols.sprinkler.region.expects import Path

PATHS: m.Timer = ("paths",)
"""Fires when the tail may send changed paths again."""
TIMES_A_PERIOD = 20
"""At most this many PATHS messages are sent to another region in an advertisement period."""


class RegionPathsContext(Process, Protocol):
    """Methods of the replica that its paths use."""

    def is_ours(self, name: str) -> bool:
        """Return whether this process belongs to the own region."""


class RegionPaths:
    """The paths of one region as one of its replicas knows them."""

    def __init__(self, node: RegionPathsContext) -> None:
        self._node = node
        self._paths = message_of({})
        self._changed = False
        self._is_tail = False
        self._pause_us = node.parameters.advertisement_period_us // TIMES_A_PERIOD
        self._is_unsent = False  # the latest paths have not been sent to the other regions
        self._pause_until_us = 0

    def set(self, paths: Mapping[int, Path]) -> None:
        """Store the decision of the head's sources."""
        assert all(len(set(path)) == len(path) for path in paths.values()), "a region twice in a path"
        self.learn(message_of(paths))

    def learn(self, paths: Paths) -> None:
        """Store the predecessor's paths."""
        self._changed |= paths != self._paths
        self._paths = paths

    def send_to(self, channel: SprinklerChannel) -> None:
        """Send the paths to a channel that has just opened, or that follows this replica from now on."""
        self._node.send(channel, self._paths)

    def flush(self, successor: SprinklerChannel | None, *, is_tail: bool) -> None:
        """Forward changed paths; called after every input."""
        changed = self._changed or is_tail > self._is_tail
        self._changed, self._is_tail = False, is_tail
        if changed and successor is not None:
            self.send_to(successor)
        self._is_unsent = is_tail and (self._is_unsent or changed)
        if not self._is_unsent:
            return
        if self._node.now_us < self._pause_until_us:
            if changed:
                self._node.emit(m.SetTimer(PATHS, self._pause_until_us))
            return
        self._is_unsent, self._pause_until_us = False, self._node.now_us + self._pause_us
        for channel in list(self._node.channels.values()):
            if channel.role is Role.PROXY and not self._node.is_ours(channel.name):
                self.send_to(channel)


def message_of(paths: Mapping[int, Path]) -> Paths:
    """Return the PATHS message with these paths."""
    return Paths(tuple([Hop(stream, region) for stream, path in sorted(paths.items()) for region in path]))


def paths_of(message: Paths) -> dict[int, Path]:
    """Return the paths of a PATHS message, by stream; the inverse of `message_of`."""
    found: dict[int, list[int]] = {}
    for hop in message.hops:
        found.setdefault(hop.stream, []).append(hop.region)
    return {stream: tuple(path) for stream, path in found.items()}
