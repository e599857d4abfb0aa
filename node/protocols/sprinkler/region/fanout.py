"""The F neighbours that a node notifies at once (paper 3.2, Shuffling): drawn again in each shuffle time.

Interpretation: a neighbour that still waits for answers keeps its place. F bounds the load of a node, but if
answers take longer than a shuffle time, more and more neighbours wait for the same node: they all ask the
one that was first to have the events. In a region of 250 clients with ports of 1 Gbit/s that receive 2.56
million events/s of 10 bytes, four clients answered half of all requests, and all fell behind without end;
with this rule, 1000 clients keep up (simulated).

A node receives F notifications, F - 1 of them redundant, and e^-F of all nodes receive none: these wait until
another node draws them. So nodes keep their random offsets, whenever events come: if all drew at the first
event, those without a notification would wait for a whole shuffle time. With 30 clients in each of three
regions, F = 4 and a shuffle time of 300 ms, the mean latency would be 365 ms, not 177 ms (simulated).
"""

from collections.abc import Callable, Sequence

from node.core.machine import Randomness
from node.protocols.sprinkler.publishing.channel import SprinklerChannel

Neighbours = Callable[[], Sequence[SprinklerChannel]]
"""Returns the connected neighbours."""


class ShuffledFanout:
    """F random neighbours, replaced at the first notification after each shuffle time.

    Shuffle times begin at an offset that each node draws.

    waits: whether a neighbour waits for answers of this node.
    targets: those that are notified at once, at most F.
    """

    def __init__(
        self,
        fanout: int,
        shuffle_us: int,
        rng: Randomness,
        neighbours: Neighbours,
        waits: Callable[[SprinklerChannel], bool],
    ) -> None:
        self.targets: list[SprinklerChannel] = []
        self._fanout = fanout
        self._shuffle_us = shuffle_us
        self._random = rng.random
        self._neighbours = neighbours
        self._waits = waits
        self._redraw_us = 0  # when a shuffle time ends

    def start(self, now_us: int) -> Sequence[SprinklerChannel]:
        """Draw the first targets; return them."""
        self.targets = []
        drawn = self.fill()
        self._redraw_us = now_us + int(self._random() * self._shuffle_us)
        return drawn

    def renew(self, now_us: int) -> Sequence[SprinklerChannel]:
        """Replace targets whose time is over, unless they wait for answers; return the new ones."""
        if now_us < self._redraw_us:
            return ()
        self._redraw_us = now_us + self._shuffle_us - (now_us - self._redraw_us) % self._shuffle_us
        self.targets = [channel for channel in self.targets if self._waits(channel)]
        return self.fill()

    def fill(self) -> Sequence[SprinklerChannel]:
        """Draw the missing targets; return them. Neighbours may come and go within a shuffle time."""
        missing = self._fanout - len(self.targets)
        if missing <= 0:
            return ()
        free = [channel for channel in self._neighbours() if channel not in self.targets]
        drawn = draw(free, missing, self._random)
        self.targets += drawn
        return drawn

    def stop(self) -> None:
        """Remove all targets."""
        self.targets = []

    def lost(self, channel: SprinklerChannel) -> bool:
        """Remove a lost neighbour. Return whether it was a target."""
        if channel not in self.targets:
            return False
        self.targets.remove(channel)
        return True


def draw(channels: list[SprinklerChannel], count: int, random: Callable[[], float]) -> list[SprinklerChannel]:
    """Return at most `count` random elements of the list, which is reordered."""
    count = min(count, len(channels))
    for at in range(count):
        other = at + int(random() * (len(channels) - at))
        channels[at], channels[other] = channels[other], channels[at]
    return channels[:count]
