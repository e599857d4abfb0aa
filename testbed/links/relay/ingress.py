"""The ingress of a link direction: admits the frames that its port receives, in the order of arrival.

Frames that other link directions hand over (`lan_switch`) are merged with those that the kernel received.
Frames that wait here to be admitted count in `DelayQueue.queued_bytes`, like those in flight.

The backlog consists of link directions with frames that were read from the rings but not yet admitted; it is
served round robin. After each portion the relay sends due frames and polls the rings again. A direction with
more than one portion goes to the end of the queue: a burst on one link, or frames that accumulated while the
relay was delayed, delay the other links by at most one portion each.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from testbed.links.relay.link_direction import DelayQueue, LinkDirection
from testbed.links.relay.port import ARRIVAL, RelayPort
from testbed.links.relay.ring import Frame
from testbed.links.relay.selected import selector

FRAME_COST_BYTES = 2_000  # the fixed work for a frame, in bytes of equal cost
STAMP_AGE_NS_MAX = 1_000_000_000  # an older timestamp, or one in the future, means that the clock was set
SelectionKey = tuple[str | None, int | None]  # address and port
PORTION_BYTES = 200_000  # of frames admitted before the loop goes on, see `ingress.FRAME_COST_BYTES`


@dataclass(slots=True, eq=False)
class Ingress:
    """A port and its link direction. Arrival times are CLOCK_MONOTONIC."""

    link: str
    direction: str
    port: RelayPort
    link_direction: LinkDirection
    _delay_queue: DelayQueue
    handed_over: list[Frame] = field(default_factory=list)  # by other link directions, not yet merged
    pending: deque[Frame] = field(default_factory=deque)  # not yet admitted
    selected: dict[SelectionKey, tuple[Callable[[bytes], bool], LinkDirection]] = field(default_factory=dict)

    @property
    def link_directions(self) -> list[LinkDirection]:
        """The link direction, and those of selected frames."""
        return [self.link_direction, *(each for _, each in self.selected.values())]

    def select(self, address: str | None, port: int | None) -> LinkDirection:
        """Return the link direction of frames that a fault selects; the first selection of a frame counts."""
        key = address, port
        if key not in self.selected:
            self.selected[key] = selector(address, port), self.link_direction.beside()
        return self.selected[key][1]

    @property
    def is_idle(self) -> bool:
        """Whether no frame waits to be admitted, so a frame handed over now is next."""
        return not (self.pending or self.handed_over) and self.port.is_empty

    def hand_over(self, arrival_ns: int, frame: bytes) -> None:
        """Accept a frame from another link direction, to be merged and admitted later."""
        self.handed_over.append((arrival_ns, frame))
        self._delay_queue.queued_bytes += len(frame)

    def take(self, ahead_ns: int) -> None:
        """Read all frames that have arrived. CLOCK_MONOTONIC is ahead of CLOCK_REALTIME by `ahead_ns`."""
        port, arrived = self.port, self.handed_over
        frames = port.receive(ahead_ns)
        while frames:
            taken_bytes = 0
            for _, frame in frames:
                taken_bytes += len(frame)
            self._delay_queue.queued_bytes += taken_bytes
            now_ns = time.monotonic_ns()
            if abs(now_ns - frames[0][0]) > STAMP_AGE_NS_MAX:
                frames = [(now_ns, frame) for _, frame in frames]
            if not arrived:
                self.pending.extend(frames)
            else:
                arrived += frames
                arrived.sort(key=ARRIVAL)
            frames = port.receive(ahead_ns) if port.left else []
        if arrived:
            self.pending.extend(arrived)
            arrived.clear()

    def admit(self, room_bytes: int) -> int:
        """Admit pending frames of up to `room_bytes`; returns the bytes left."""
        pending, admitted_bytes = self.pending, 0
        admit = self._admit_selected if self.selected else self.link_direction.admit
        while pending and room_bytes > 0:
            arrival_ns, frame = pending.popleft()
            size = len(frame)
            room_bytes -= size + FRAME_COST_BYTES
            admitted_bytes += size
            admit(frame, arrival_ns)
        self._delay_queue.queued_bytes -= admitted_bytes  # until here they count twice, which is safe
        return room_bytes

    def _admit_selected(self, frame: bytes, arrival_ns: int) -> None:
        for matches, link_direction in self.selected.values():
            if matches(frame):
                link_direction.admit(frame, arrival_ns)
                return
        self.link_direction.admit(frame, arrival_ns)


class IngressBacklog:
    """A round-robin queue of link directions; false if empty."""

    __slots__ = ("_ingresses",)

    def __init__(self) -> None:
        self._ingresses: dict[Ingress, None] = {}  # in round-robin order

    def __bool__(self) -> bool:
        return bool(self._ingresses)

    def add(self, ingress: Ingress) -> None:
        """Append a direction to the queue, unless it is queued already."""
        self._ingresses[ingress] = None

    def admit_portion(self) -> None:
        """Admit one portion of frames, from several directions if the first ones have fewer."""
        ingresses, room_bytes = self._ingresses, PORTION_BYTES
        while ingresses and room_bytes > 0:
            ingress = next(iter(ingresses))
            del ingresses[ingress]
            room_bytes = ingress.admit(room_bytes)
            if ingress.pending:
                ingresses[ingress] = None
