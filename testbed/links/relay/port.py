"""One end of an emulated link, which receives the frames of its interface in order and sends through it.

Slots for whole offloaded frames cost 68 KiB each, so few fit into memory and a burst of small frames would
overrun them. A port therefore has one ring for each range of sizes (`ring_sizes`), merged by the kernel's
timestamps. A frame in one ring may have a predecessor in another that arrived just after that ring was read:
`receive` leaves frames whose order is not certain to the next call.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from operator import itemgetter

from testbed.links.relay.ring import Frame, Ring, sending_socket
from testbed.links.relay.ring_sizes import KINDS

ARRIVAL = itemgetter(0)


class RelayPort:
    """An interface with its receive rings, open from construction to `close`.

    Frames written to `out` leave through the interface.
    """

    def __init__(self, interface: str, blocks: Sequence[int]) -> None:
        """Open `interface` with one ring of each of `KINDS`; blocks: the sizes. Raises OSError."""
        with ExitStack() as stack:
            rings = []
            for kind, count in zip(KINDS, blocks, strict=True):
                rings.append(Ring(interface, kind, count))
                stack.callback(rings[-1].close)
            self._resources = stack.pop_all()
        self._rings = rings
        self._small, self._pairs, self._medium, self._large = rings
        self.left: list[Frame] = []
        self.out = self._small.fileno()

    def descriptors(self) -> tuple[int, ...]:
        """Return the descriptors to wait on."""
        return tuple(ring.fileno() for ring in self._rings)

    @property
    def is_empty(self) -> bool:
        """Whether `receive` would return no frame."""
        return not (self.left or any(ring.status[ring.mark] for ring in self._rings))

    def receive(self, ahead_ns: int) -> list[Frame]:
        """Return the frames that have arrived, in order. If some are `left`, call again without waiting.

        CLOCK_MONOTONIC is ahead of CLOCK_REALTIME by `ahead_ns`.
        """
        frames = self._small.take(ahead_ns)
        if self.left:
            frames, self.left = self.left + frames, []
        pairs, medium, large = self._pairs, self._medium, self._large
        # The usual case, written out for speed.
        if not (pairs.status[pairs.mark] or medium.status[medium.mark] or large.status[large.mark]):
            return frames
        frames += pairs.take(ahead_ns) + medium.take(ahead_ns) + large.take(ahead_ns)
        last_ns = max([stamp_ns for stamp_ns, _ in frames], default=0)
        for ring in self._rings:  # by now every predecessor of `frames` is in its ring
            for frame in ring.take(ahead_ns):
                (frames if frame[0] <= last_ns else self.left).append(frame)
        self.left.sort(key=ARRIVAL)
        return sorted(frames, key=ARRIVAL)

    @property
    def dropped(self) -> int:
        """The number of frames dropped since the start because the rings were full."""
        return sum(ring.dropped() for ring in self._rings)

    @property
    def peak(self) -> float:
        """The highest fill level of any of its rings so far, 0 to 1."""
        return max(ring.peak for ring in self._rings)

    def clear_errors(self) -> None:
        """Clear pending socket errors, so that the sockets work again after the interface was down."""
        for ring in self._rings:
            ring.clear_error()

    def close(self) -> None:
        """Close the sockets; idempotent."""
        self._resources.close()


class Outlet:
    """An interface that is only used to send, open from construction to `close`."""

    def __init__(self, interface: str) -> None:
        """Open `interface`. Raises OSError."""
        self._socket = sending_socket(interface)
        self.out = self._socket.fileno()

    def close(self) -> None:
        """Close the socket; idempotent."""
        self._socket.close()
