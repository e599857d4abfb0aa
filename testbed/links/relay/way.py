"""A way is a port and the lane that takes what is received there, in the order of arrival.

What other lanes hand over (`lan_switch`) arrives at the port, too, and is merged with what the kernel
received.
"""

import time
from collections import deque

from testbed.links.relay.lane import Lane
from testbed.links.relay.port import ARRIVAL, Port
from testbed.links.relay.ring import Frame

FRAME_COST_BYTES = 2_000  # a frame is as much work as so many of its bytes
STAMP_AGE_NS_MAX = 1_000_000_000  # an older stamp, or one to come, means that the clock was set


class Way:
    """A port and its lane. Arrivals are in CLOCK_MONOTONIC."""

    __slots__ = ("direction", "handed", "lane", "link", "port", "taken")

    def __init__(self, link: str, direction: str, port: Port, lane: Lane) -> None:
        self.link = link
        self.direction = direction
        self.port = port
        self.lane = lane
        self.handed: list[Frame] = []  # by other lanes, not taken yet
        self.taken: deque[Frame] = deque()  # not admitted

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be admitted: what is handed over now is next."""
        return not (self.taken or self.handed) and self.port.is_empty

    def take(self, ahead_ns: int) -> None:
        """Take everything that has arrived. CLOCK_MONOTONIC is ahead of CLOCK_REALTIME by `ahead_ns`."""
        port, arrived = self.port, self.handed
        frames = port.receive()
        while frames:
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
        taken, admit = self.taken, self.lane.admit
        while taken and room_bytes > 0:
            arrival_ns, frame = taken.popleft()
            room_bytes -= len(frame) + FRAME_COST_BYTES
            admit(frame, arrival_ns)
        return room_bytes
