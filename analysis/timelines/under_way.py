"""How long published events may still be in flight: for the system's settle time. A fault may delay events
published during it, or shortly before, until it is mended; then the system settles. A client that subscribes
in that time may get them.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from analysis.arrays import NEVER, Ints
from analysis.timelines.recovering.run_faults import RunFault
from analysis.timelines.run_metadata import RunMetadata
from experiments.faults.kinds import kind_named


@dataclass(frozen=True, slots=True)
class InFlightSpans:
    """spans_ns: when faults began and were mended, sorted by beginning, latest first."""

    settle_ns: int
    spans_ns: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_metadata(cls, metadata: RunMetadata) -> Self:
        """Return the spans of a run. A system also settles after faults that are never mended; churn delays
        nothing.
        """
        spans = []
        for fault in metadata.applied_faults:
            if not fault.mends:
                to_ns = mended_ns(fault, metadata)
                spans.append((fault.t_ns, fault.t_ns if to_ns == NEVER else to_ns))
        return cls(metadata.declared.contract.settle_us * 1000, tuple(sorted(spans, reverse=True)))

    def since(self, asked_ns: Ints) -> Ints:
        """Return the earliest publication that may reach clients subscribing at these times; NEVER stays
        NEVER.
        """
        found = np.where(asked_ns == NEVER, NEVER, asked_ns - self.settle_ns)
        for from_ns, to_ns in self.spans_ns:
            is_held_up = (found != NEVER) & (from_ns <= asked_ns) & (found <= to_ns)
            found = np.where(is_held_up, np.minimum(found, from_ns - self.settle_ns), found)
        return found


def mended_ns(fault: RunFault, metadata: RunMetadata) -> int:
    """Return when everything that a fault changed was restored; NEVER if it was not.

    A cut direction is restored when it is up again, other ones when they are as they were before the fault.
    """
    ends = [fault.t_ns]
    for hop, applied_ns in fault.hops.items():
        periods = metadata.periods[metadata.link_of[hop]]
        number = [period.start_ns is None or period.start_ns <= applied_ns for period in periods].count(True)
        struck, before = periods[number - 1], periods[max(0, number - 2)]
        later = (
            period.start_ns
            for period in periods[number:]
            if period.start_ns is not None and (period.up if not struck.up else period.like(before))
        )
        ends.append(min(later, default=NEVER))
    for process in fault.processes:
        again = [
            other.t_ns
            for other in metadata.applied_changes
            if other.mends and process in other.processes and other.t_ns > fault.t_ns
        ]
        again += [] if fault.ended_ns is None else [fault.ended_ns]
        ends.append(min(again, default=NEVER))
    return max(ends)


def all_mended(metadata: RunMetadata) -> bool:
    """Return whether every applied fault that needs mending was mended."""
    return all(
        fault.mends or not kind_named(fault.kind).needs_mending or mended_ns(fault, metadata) != NEVER
        for fault in metadata.applied_faults
    )
