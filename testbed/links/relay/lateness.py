"""How late frames leave, as a histogram of fixed cells: an increment a frame, however long the run."""

from collections.abc import Sequence

CELL_NS = 10_000
CELLS = 2_000  # the last one takes everything from 20 ms on


def new_histogram() -> list[int]:
    """Cells of `CELL_NS`; the caller counts a lateness of n ns in cell min(n // CELL_NS, CELLS - 1)."""
    return [0] * CELLS


def percentile_us(histogram: Sequence[int], fraction: float) -> float | None:
    """The upper edge, in microseconds, of the cell that holds this percentile; None without frames."""
    total = sum(histogram)
    if not total:
        return None
    seen = 0
    for cell, count in enumerate(histogram):
        seen += count
        if seen >= fraction * total:
            return (cell + 1) * CELL_NS / 1000
    raise AssertionError("a fraction is at most 1")
