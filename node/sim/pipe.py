"""One direction of a simulated connection: FIFO, delayed, as fast as its rate, and silent while its way is
cut.

It behaves as TCP does towards a machine: nothing is lost or reordered while the connection lives. What is
in flight when the way is cut, and what is handed over during the cut, arrives after it ends,
`RETRANSMIT_US` later. Where only the other direction is cut, what is in flight still arrives, but nothing
new is sent: acknowledgements do not come. Segments, windows and congestion are not modelled.
"""

from collections import deque
from collections.abc import Callable

from node.sim.clock import Action, Clock

RETRANSMIT_US = 200_000  # the kernel's least retransmission time-out
LOW_WATER_BYTES = 65_536  # a pipe with less than this under way can take more
US_PER_S = 1_000_000


class Pipe:
    """Carries things from one end of a connection to the other."""

    def __init__(self, clock: Clock, delay_us: Callable[[], int], rate_bits_per_s: float | None) -> None:
        self._clock = clock
        self._delay_us = delay_us
        self._rate_bits_per_s = rate_bits_per_s
        self._flying: deque[tuple[int, Action]] = deque()  # size and arrival of what is on its way, in order
        self._held: deque[tuple[int, Action]] = deque()  # handed over after that, waiting for the way
        self._bytes = 0  # of both
        self._flight = 0  # arrivals planned in an earlier flight do not take place
        self._blocked = False
        self._free_us = 0  # when the last bit handed over so far has left
        self._arrived_us = 0  # nothing overtakes
        self._wants_room: Action | None = None

    def send(self, size_bytes: int, arrival: Action) -> None:
        """Hand something over; `arrival` is what happens at the other end."""
        self._bytes += size_bytes
        if self._blocked:
            self._held.append((size_bytes, arrival))
        else:
            self._fly(size_bytes, arrival)

    def when_room(self, action: Action) -> None:
        """Call `action` once, as soon as little is under way."""
        self._wants_room = action
        self._offer_room()

    def cut(self, *, itself: bool) -> None:
        """The way is cut: this direction (what flies has to be sent again), or only the other one."""
        self._blocked = True
        if itself:
            self._flight += 1
            self._held.extendleft(reversed(self._flying))
            self._flying.clear()

    def heal(self) -> None:
        """Both directions are whole again."""
        self._blocked = False
        self._free_us = max(self._free_us, self._clock.now_us + RETRANSMIT_US)
        held, self._held = self._held, deque()
        for size_bytes, arrival in held:
            self._fly(size_bytes, arrival)

    def discard(self) -> None:
        """Forget everything that is under way."""
        self._flight += 1
        self._flying.clear()
        self._held.clear()
        self._bytes = 0
        self._wants_room = None

    def _fly(self, size_bytes: int, arrival: Action) -> None:
        takes_us = int(size_bytes * 8 * US_PER_S / self._rate_bits_per_s) if self._rate_bits_per_s else 0
        self._free_us = max(self._free_us, self._clock.now_us) + takes_us
        self._arrived_us = max(self._arrived_us, self._free_us + self._delay_us())
        self._flying.append((size_bytes, arrival))
        flight = self._flight
        self._clock.at(self._arrived_us, lambda: self._arrive(flight))

    def _arrive(self, flight: int) -> None:
        if flight != self._flight:
            return
        size_bytes, arrival = self._flying.popleft()
        self._bytes -= size_bytes
        arrival()
        self._offer_room()

    def _offer_room(self) -> None:
        if self._wants_room is not None and self._bytes < LOW_WATER_BYTES:
            action, self._wants_room = self._wants_room, None
            self._clock.at(self._clock.now_us, action)
