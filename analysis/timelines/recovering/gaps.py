"""Detects whether a client was without a stream's events for longer than usual.

Gaps show the effect of a fault if nothing shows the path of events, e.g. if an overlay may route them over
other regions. A *wait* lasts from when an event was due, or from the arrival of the last one before it, until
it or a later one arrives; so a publisher's pause does not count as a wait. A wait is a *gap* of a fault if

- it begins within the contract's settle time after the fault or, if no event was due in that time, with the
  first event due after the fault; and before the next fault;
- it ends after the fault, and had not already lasted longer than usual before it;
- it is more than FACTOR times as long as the longest wait of the calm time before the fault, and more than
  BEYOND_NS longer.

The calm time starts at the first event, or when the previous fault has settled. Gaps cannot be detected if it
is shorter than CALM_NS, or if no event arrived in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from analysis.arrays import NEVER, Bools, Ints
from analysis.timelines.delivery.stream_pieces import ClientPieces
from analysis.timelines.schemas import BIN_NS

FACTOR = 3
BEYOND_NS = BIN_NS
CALM_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ClientWaits:
    """Waits of a stream's clients for its pieces: a row for each client, a column for each piece.

    Times in nanoseconds. If nothing was due, or it arrived with an earlier piece, both times are equal.
    """

    begin_ns: Ints
    end_ns: Ints

    @classmethod
    def from_intervals(cls, cut: ClientPieces, clients: Sequence[int], until_ns: int) -> Self:
        """Return the waits of some clients of a stream while it was published.

        clients: indices among the hosts of `cut`. until_ns: when publishing stopped.
        """
        arrived_ns = cut.arrived_ns[clients]
        due = np.broadcast_to(cut.published_ns < until_ns, arrived_ns.shape)
        due = due if cut.due is None else due & cut.due[clients]
        came_ns = np.where(due, arrived_ns, NEVER)
        came_ns = np.minimum(np.minimum.accumulate(came_ns[:, ::-1], axis=1)[:, ::-1], until_ns)
        last_ns = np.maximum.accumulate(np.where(due, came_ns, 0), axis=1)
        before_ns = np.concatenate((np.zeros_like(last_ns[:, :1]), last_ns[:, :-1]), axis=1)
        begin_ns = np.maximum(before_ns, cut.published_ns)
        return cls(begin_ns, np.where(due, np.maximum(came_ns, begin_ns), begin_ns))

    def gap_of(self, fault_ns: int, *, calm_ns: int, next_ns: int, settle_ns: int) -> tuple[Bools, Bools]:
        """Return which clients had a gap of a fault, and for which clients this can be determined.

        calm_ns: when the previous fault had settled. next_ns: when the next fault was applied.
        """
        length_ns = self.end_ns - self.begin_ns
        waited = length_ns > 0
        calm = waited & (self.begin_ns >= calm_ns) & (self.end_ns <= fault_ns)
        usual_ns = np.where(calm, length_ns, 0).max(axis=1, initial=0)
        since_ns = np.where(calm, self.begin_ns, NEVER).min(axis=1, initial=NEVER)
        first_ns = np.where(waited & (self.begin_ns >= fault_ns), self.begin_ns, NEVER).min(
            axis=1, initial=NEVER
        )
        until_ns = np.minimum(np.maximum(fault_ns + settle_ns, first_ns), next_ns)
        mine = waited & (self.end_ns > fault_ns) & (self.begin_ns <= until_ns[:, np.newaxis])
        mine &= self.begin_ns >= fault_ns - usual_ns[:, np.newaxis]
        longest_ns = np.where(mine, length_ns, 0).max(axis=1, initial=0)
        known = since_ns <= fault_ns - CALM_NS
        return known & (longest_ns > np.maximum(FACTOR * usual_ns, usual_ns + BEYOND_NS)), known
