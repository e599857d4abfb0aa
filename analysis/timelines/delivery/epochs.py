"""The epochs of a stream placed one after another: numbers that are comparable across epochs, and their
inverse.

Sequence numbers jump from one epoch to the next (`node.core.epochs`), farther than the spans in which many
streams are processed together (`sequence_intervals`). So the epochs of each stream are placed one after
another, each as long as its highest recorded number. Order, lengths and adjacency within an epoch are
preserved; the end of an epoch and the beginning of the next are not adjacent. If a run has only the first
epoch, as nearly always, nothing changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis.arrays import Ints, ints
from analysis.timelines.delivery.sequence_intervals import reach
from node.core.epochs import NUMBER_BITS


@dataclass(frozen=True, slots=True)
class EpochLayout:
    """Every stream's epochs in order, as parallel arrays; empty if there is only the first epoch."""

    stream: Ints
    epoch: Ints
    start: Ints  # comparable number of the epoch's number 0

    def laid_out(self, table: pa.Table) -> pa.Table:
        """Return the rows with comparable numbers."""
        if not len(self.stream):
            return table
        found = self.numbers(ints(table, "stream"), ints(table, "first_seq"))
        return table.set_column(table.column_names.index("first_seq"), "first_seq", pa.array(found))

    def numbers(self, stream: Ints, seq: Ints) -> Ints:
        """Return the comparable numbers of sequence numbers in known epochs."""
        if not len(self.stream):
            return seq
        at = np.searchsorted(_keys(self.stream, self.epoch), _keys(stream, seq >> NUMBER_BITS))
        return self.start[at] + (seq & ((1 << NUMBER_BITS) - 1))

    def original(self, stream: int, numbers: Ints) -> Ints:
        """Return the sequence numbers of comparable numbers of one stream."""
        mine = np.flatnonzero(self.stream == stream)
        if not len(mine):
            return numbers
        at = mine[np.searchsorted(self.start[mine], numbers, side="right") - 1]
        return (self.epoch[at] << NUMBER_BITS) + numbers - self.start[at]


def epoch_layout(tables: Sequence[pa.Table]) -> EpochLayout:
    """Return the layout of the epochs in these tables of `schemas.RECORDS` or `schemas.EVENTS`."""
    stream, seq = (
        np.concatenate([ints(table, name) for table in tables]) for name in ("stream", "first_seq")
    )
    # One more than the numbers that each row covers, so that epochs are not adjacent.
    length_of_row = np.concatenate([reach(table) + 1 for table in tables])
    if not len(seq) or int(seq.max()) >> NUMBER_BITS == 0:
        nothing = np.zeros(0, np.int64)
        return EpochLayout(nothing, nothing, nothing)
    keys = _keys(stream, seq >> NUMBER_BITS)
    known, which = np.unique(keys, return_inverse=True)
    length = np.zeros(len(known), np.int64)
    np.maximum.at(length, which, (seq & ((1 << NUMBER_BITS) - 1)) + length_of_row)
    before = np.cumsum(length) - length
    streams = known >> EPOCH_BITS
    first_of_stream = np.searchsorted(streams, streams)
    return EpochLayout(streams, known & ((1 << EPOCH_BITS) - 1), before - before[first_of_stream])


EPOCH_BITS = 63 - NUMBER_BITS


def _keys(stream: Ints, epoch: Ints) -> Ints:
    """Return keys ordered by stream, then epoch."""
    return (stream << EPOCH_BITS) | epoch
