"""Latencies of one stream as its batches settle: from publication until every client has an event.

Sequence numbers settle in order: those up to the first that some client lacks are taken, cut into pieces as
`analysis.timelines.pieces` does, and forgotten. What waits is bounded: a stream of which more than
WAITING_MAX batches wait (some client lost one for good) goes on after the oldest of them.
"""

from collections.abc import Sequence

import numpy as np

from analysis.live.decoder import Batch
from analysis.timelines.arrays import Ints
from analysis.timelines.pieces import NEVER, Batches, cut

WAITING_MAX = 50_000
_Row = tuple[int, int, int]
"""First sequence number, end, time."""


class Latencies:
    """One stream's. `clients` are those that count."""

    def __init__(self, clients: Sequence[str]) -> None:
        self._published: list[_Row] = []
        self._arrived: dict[str, list[_Row]] = {client: [] for client in clients}
        self._settled = 0  # all before this number is done
        self.given_up = 0  # batches that were passed over

    def add(self, batch: Batch) -> None:
        """Take a batch of this stream."""
        rows = self._published if batch.published else self._arrived.get(batch.host)
        end = batch.first_seq + batch.count
        if rows is not None and end > self._settled:
            rows.append((max(batch.first_seq, self._settled), end, batch.t_ns))

    def settle(self) -> tuple[Ints, Ints, Ints]:
        """When events were published, their latencies, and of how many events each tells; each event once."""
        cuts = cut(_batches(self._published), {name: _batches(rows) for name, rows in self._arrived.items()})
        came_ns = cuts.arrived_ns.max(axis=0, initial=-1)
        whole = (cuts.published_ns != NEVER) & (came_ns != NEVER) & (came_ns >= 0)
        done = int(np.argmin(np.append(whole, False)))
        if done:
            self._forget(int(cuts.first_seq[done - 1] + cuts.count[done - 1]))
        elif (
            len(self._published) > WAITING_MAX
            or max(map(len, self._arrived.values()), default=0) > WAITING_MAX
        ):
            self.given_up += 1
            self._forget(int(cuts.first_seq[0] + cuts.count[0]))
        published_ns = cuts.published_ns[:done]
        return published_ns, came_ns[:done] - published_ns, cuts.count[:done]

    def _forget(self, settled: int) -> None:
        self._settled = settled
        self._published = _after(self._published, settled)
        self._arrived = {name: _after(rows, settled) for name, rows in self._arrived.items()}


def _after(rows: list[_Row], settled: int) -> list[_Row]:
    return [(max(first, settled), end, t_ns) for first, end, t_ns in rows if end > settled]


def _batches(rows: list[_Row]) -> Batches:
    first, end, t_ns = np.array(rows, np.int64).reshape(-1, 3).T
    return Batches(first, end - first, t_ns)
