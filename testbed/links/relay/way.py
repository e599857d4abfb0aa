"""A way is a port and the lane that takes what is received there, in the order of arrival.

What other lanes hand over (`lan_switch`) arrives at the port, too, and is merged with what the kernel
received. All that waits here to be admitted counts in `Hold.held_bytes`, as what the lanes hold does.
"""

import time
from collections import deque

from testbed.links.relay.lane import Hold, Lane
from testbed.links.relay.port import ARRIVAL, Port
from testbed.links.relay.ring import Frame

FRAME_COST_BYTES = 2_000  # a frame is as much work as so many of its bytes
STAMP_AGE_NS_MAX = 1_000_000_000  # an older stamp, or one to come, means that the clock was set


class Way:
    """A port and its lane. Arrivals are in CLOCK_MONOTONIC."""

    __slots__ = ("_hold", "direction", "handed", "lane", "link", "port", "taken")

    def __init__(self, link: str, direction: str, port: Port, lane: Lane, hold: Hold) -> None:
        self.link = link
        self.direction = direction
        self.port = port
        self.lane = lane
        self.handed: list[Frame] = []  # by other lanes, not taken yet
        self.taken: deque[Frame] = deque()  # not admitted
        self._hold = hold

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be admitted: what is handed over now is next."""
        return not (self.taken or self.handed) and self.port.is_empty

    def hand_over(self, arrival_ns: int, frame: bytes) -> None:
        """Let a frame of another lane arrive, to be taken and admitted later."""
        self.handed.append((arrival_ns, frame))
        self._hold.held_bytes += len(frame)

    def take(self, ahead_ns: int) -> None:
        """Take everything that has arrived. CLOCK_MONOTONIC is ahead of CLOCK_REALTIME by `ahead_ns`."""
        port, arrived = self.port, self.handed
        frames = port.receive()
        while frames:
            self._hold.held_bytes += sum([len(frame) for _, frame in frames])
            if abs(time.time_ns() - frames[0][0]) > STAMP_AGE_NS_MAX:
                frames = [(time.time_ns(), frame) for _, frame in frames]
            if not arrived:
                self.taken.extend([(stamp_ns + ahead_ns, frame) for stamp_ns, frame in frames])
            else:
                arrived += [(stamp_ns + ahead_ns, frame) for stamp_ns, frame in frames]
                arrived.sort(key=ARRIVAL)
            frames = port.receive() if port.left else []
        if arrived:
            self.taken.extend(arrived)
            arrived.clear()

    def admit(self, room_bytes: int) -> int:
        """Admit what was taken, in a portion of this size; returns what is left of the portion."""
        taken, admit, hold = self.taken, self.lane.admit, self._hold
        while taken and room_bytes > 0:
            arrival_ns, frame = taken.popleft()
            size = len(frame)
            room_bytes -= size + FRAME_COST_BYTES
            hold.held_bytes -= size
            admit(frame, arrival_ns)
        return room_bytes
