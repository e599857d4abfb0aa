"""The frames in flight, of all lanes: a heap by release time.

Frames with equal times leave in the order in which they came. What the heap holds, and what waits to be
admitted to it (`way`), is bounded in bytes.
"""

from collections.abc import Callable
from heapq import heapify, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.links.relay.lane import Lane

HELD_BYTES_MAX = 1 << 30  # of all lanes together: 4 Gbit/s for 2 s; beyond it what is admitted is dropped

Held = tuple[int, int, "Lane", bytes]  # release in CLOCK_MONOTONIC ns, serial, lane, frame


class Hold:
    """`heap` is read and popped by the loop, which keeps `held_bytes` right when it does; ways count there
    what they have not admitted yet.
    """

    __slots__ = ("heap", "held_bytes", "serial")

    def __init__(self) -> None:
        self.heap: list[Held] = []
        self.held_bytes = 0
        self.serial = count()

    def push(self, release_ns: int, lane: "Lane", frame: bytes) -> None:
        """Hold `frame` until `release_ns`."""
        self.held_bytes += len(frame)
        heappush(self.heap, (release_ns, next(self.serial), lane, frame))

    def swallow(self, lane: "Lane") -> list[bytes]:
        """Take every frame of `lane` out, for good."""
        swallowed = [entry[3] for entry in self.heap if entry[2] is lane]
        self.heap[:] = [entry for entry in self.heap if entry[2] is not lane]
        heapify(self.heap)
        self.held_bytes -= sum(map(len, swallowed))
        return swallowed

    def retime(self, lane: "Lane", new_release_ns: Callable[[int], int]) -> None:
        """Give every frame of `lane` another release time."""
        self.heap[:] = [
            (new_release_ns(entry[0]), *entry[1:]) if entry[2] is lane else entry for entry in self.heap
        ]
        heapify(self.heap)
