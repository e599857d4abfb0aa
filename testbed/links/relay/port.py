"""One end of a link's middle: what arrives at its interface, in order, and a descriptor to send through.

Slots for whole offloaded frames cost 68 KiB each, so few fit into memory and a burst of small frames would
overrun them. Hence two rings, one for large frames and one with hundreds of slots for small ones, merged
by the kernel's stamps. A frame found in one ring may have a predecessor in the other that came just after
that one was read: `receive` leaves what it cannot be sure of to the next call.
"""

from contextlib import ExitStack
from operator import itemgetter

from testbed.links.relay.ring import Frame, Ring, sending_socket

SMALL_SLOT_BYTES = 2 << 10
SMALL_FRAME_BYTES_MAX = 1800  # the ring's own headers take some 100 bytes of a slot
LARGE_SLOT_BYTES = 68 << 10
SMALL_SHARE = 4  # the small frames' ring has one block in so many
LARGE_FRAME_BYTES_MAX = 66 << 10  # IP's 64 KiB, Ethernet header, and some


class Port:
    """Open from construction to `close`. Frames written to `out` leave through the interface."""

    def __init__(self, interface: str, blocks: int) -> None:
        """Open `interface` with rings of `blocks` blocks together, at least 2. Raises OSError."""
        small_blocks = max(1, blocks // SMALL_SHARE)
        small = range(SMALL_FRAME_BYTES_MAX + 1)
        large = range(SMALL_FRAME_BYTES_MAX + 1, LARGE_FRAME_BYTES_MAX + 1)
        with ExitStack() as stack:
            self._small = Ring(interface, slot_bytes=SMALL_SLOT_BYTES, blocks=small_blocks, sizes=small)
            stack.callback(self._small.close)
            self._large = Ring(
                interface, slot_bytes=LARGE_SLOT_BYTES, blocks=blocks - small_blocks, sizes=large
            )
            stack.callback(self._large.close)
            self._resources = stack.pop_all()
        self.left: list[Frame] = []
        self.out = self._small.fileno()

    def descriptors(self) -> tuple[int, int]:
        """What to wait on."""
        return self._small.fileno(), self._large.fileno()

    def receive(self) -> list[Frame]:
        """The frames that have arrived, in their order. If some are `left`, call again without waiting."""
        small, large = self._small.take(), self._large
        if self.left:
            small, self.left = self.left + small, []
        if not large.status[large.mark]:  # spelled out for speed: this is nearly always so
            return small
        large_frames = large.take()  # every large predecessor of `small` is in it
        more = self._small.take()  # every small predecessor of `large_frames` is in it, or in `small`
        last_ns = large_frames[-1][0] if large_frames else 0
        self.left = [frame for frame in more if frame[0] > last_ns]
        sure = [frame for frame in more if frame[0] <= last_ns]
        return sorted(small + large_frames + sure, key=itemgetter(0))

    def dropped(self) -> int:
        """Frames lost for want of slots, since the start."""
        return self._small.dropped() + self._large.dropped()

    def clear_errors(self) -> None:
        """Make the sockets usable again after the interface was down."""
        self._small.clear_error()
        self._large.clear_error()

    def close(self) -> None:
        """Close both sockets; idempotent."""
        self._resources.close()


class Outlet:
    """An interface that is only sent through: what arrives there is not the relay's. Open until `close`."""

    def __init__(self, interface: str) -> None:
        """Raises OSError."""
        self._socket = sending_socket(interface)
        self.out = self._socket.fileno()

    def close(self) -> None:
        """Close the socket; idempotent."""
        self._socket.close()
