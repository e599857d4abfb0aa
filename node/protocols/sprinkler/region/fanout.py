"""Choice of the F neighbours that a node notifies at once (paper 3.2, Shuffling), in two interpretations.

`ShuffledFanout`, the default, is the paper's: F random neighbours, drawn again in each shuffle time. A node
receives F notifications, F - 1 of them redundant, and e^-F of all nodes receive none: with F = 4 and 46
clients in each of three regions, half of all events wait somewhere for the next ones.

`KeptFanout` (parameter `keep_fanout`) keeps the neighbours that request the notified events, like the eager
links of Plumtree (Leitao, Pereira, Rodrigues: Epidemic Broadcast Trees, SRDS 2007): from its first REQUEST on
a neighbour is one of the F, until `IGNORED_NOTIFYS` in a row brought it nothing new. Each neighbour is tried
once. The tail of the proxy, the source of all events, always fills up its F at random. A node whose source is
lost is notified later by a random neighbour (`dissemination`); it sends that one a request, and is kept
there.
"""

from collections.abc import Callable, Sequence

from node.core.machine import Randomness
from node.protocols.sprinkler.publishing.channel import SprinklerChannel

IGNORED_NOTIFYS = 3  # in a row; fewer would drop neighbours whose REQUEST is in transit
TRIED = IGNORED_NOTIFYS - 1  # initial count of a neighbour that is notified for the first time

Neighbours = Callable[[], Sequence[SprinklerChannel]]
"""Returns the connected neighbours."""


class ShuffledFanout:
    """F random neighbours, replaced at the first notification after each shuffle time.

    targets: those that are notified at once, at most F.
    """

    def __init__(self, fanout: int, shuffle_us: int, rng: Randomness, neighbours: Neighbours) -> None:
        self.targets: list[SprinklerChannel] = []
        self._fanout = fanout
        self._shuffle_us = shuffle_us
        self._random = rng.random
        self._neighbours = neighbours
        self._redraw_us = 0  # when the shuffle time ends

    def start(self, now_us: int) -> Sequence[SprinklerChannel]:
        """Draw the first targets; return them. Nodes shuffle at random offsets."""
        self.targets = []
        drawn = self.fill()
        self._redraw_us = now_us + int(self._random() * self._shuffle_us)
        return drawn

    def renew(self, now_us: int) -> Sequence[SprinklerChannel]:
        """Replace targets whose time is over; return the new ones."""
        if now_us < self._redraw_us:
            return ()
        self._redraw_us = now_us + self._shuffle_us
        self.targets = []
        return self.fill()

    def fill(self) -> Sequence[SprinklerChannel]:
        """Draw the missing targets; return them. Neighbours may come and go within a shuffle time."""
        missing = self._fanout - len(self.targets)
        if missing <= 0:
            return ()
        free = [channel for channel in self._neighbours() if channel not in self.targets]
        drawn = self._drawn(free, missing)
        self.targets += drawn
        return drawn

    def _drawn(self, free: list[SprinklerChannel], missing: int) -> list[SprinklerChannel]:
        return draw(free, missing, self._random)

    def stop(self) -> None:
        """Remove all targets."""
        self.targets = []

    def offer(self, channel: SprinklerChannel) -> None:
        """Note that a target is sent a NOTIFY, or is left out because it has reported the same progress."""

    def asked(self, channel: SprinklerChannel) -> None:
        """Note that a neighbour sent a REQUEST."""

    def lost(self, channel: SprinklerChannel) -> bool:
        """Remove a lost neighbour. Return whether it was a target."""
        if channel not in self.targets:
            return False
        self.targets.remove(channel)
        return True


class KeptFanout(ShuffledFanout):
    """Keeps targets that send requests, and tries each other neighbour once. is_root: always fill up to F."""

    def __init__(self, fanout: int, rng: Randomness, neighbours: Neighbours, *, is_root: bool) -> None:
        super().__init__(fanout, 0, rng, neighbours)
        self._is_root = is_root
        # offers since the last REQUEST, of neighbours that were tried
        self._ignored: dict[SprinklerChannel, int] = {}

    def start(self, now_us: int) -> Sequence[SprinklerChannel]:
        """Draw the first targets; return them."""
        return self.fill()

    def renew(self, now_us: int) -> Sequence[SprinklerChannel]:
        """Replace targets that ignored several notifications; return the new ones."""
        self.targets = [each for each in self.targets if self._ignored[each] < IGNORED_NOTIFYS]
        return self.fill()

    def _drawn(self, free: list[SprinklerChannel], missing: int) -> list[SprinklerChannel]:
        drawn = draw([each for each in free if each not in self._ignored], missing, self._random)
        if self._is_root and len(drawn) < missing:
            again = [each for each in free if each in self._ignored]
            drawn += draw(again, missing - len(drawn), self._random)
        self._ignored.update(dict.fromkeys(drawn, TRIED))
        return drawn

    def stop(self) -> None:
        """Remove all targets."""
        super().stop()
        self._ignored.clear()

    def offer(self, channel: SprinklerChannel) -> None:
        """Count the notifications that brought this neighbour nothing new."""
        self._ignored[channel] += 1

    def asked(self, channel: SprinklerChannel) -> None:
        """Keep the neighbour. If F others send requests already, it is left to another node."""
        self._ignored[channel] = 0
        if channel in self.targets:
            return
        if len(self.targets) >= self._fanout:
            worst = max(self.targets, key=self._ignored.__getitem__)
            if self._ignored[worst] < TRIED:
                return
            self.targets.remove(worst)
        self.targets.append(channel)

    def lost(self, channel: SprinklerChannel) -> bool:
        """Remove a lost neighbour. Return whether it was a target."""
        self._ignored.pop(channel, None)
        return super().lost(channel)


def draw(channels: list[SprinklerChannel], count: int, random: Callable[[], float]) -> list[SprinklerChannel]:
    """Return at most `count` random elements of the list, which is reordered."""
    count = min(count, len(channels))
    for at in range(count):
        other = at + int(random() * (len(channels) - at))
        channels[at], channels[other] = channels[other], channels[at]
    return channels[:count]
