"""An axis: from where to where it goes, its ticks at round numbers, and where a value stands on it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_EMPTY = (0.0, 1.0)  # what an axis without any value shows
_DECADES_FOR_DECADES_ALONE = 3  # a logarithmic axis that is longer has no ticks at 2 and 5
TICK_DIGITS = 5  # significant ones, with which a tick is written
_DECIMALS_MAX = 6  # `analysis.report.formatting.number` writes no more
_STEP_LEAST = 4  # of the last of these digits: a step of 5 is told by it, one of 2.5 would not be
_MARGIN = 0.08  # of an axis that does not start at 0, beyond the values, as a share of their span


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`, both included."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Where the value stands: 0 at `low`, 1 at `high`; what is beyond stands at the end."""
        if self.logarithmic:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)


def linear(values: Iterable[float], *, from_zero: bool = True, ticks: int = 4) -> Axis:
    """An axis that holds all values, with about so many steps. from_zero: it starts at 0, or below."""
    found = [value for value in values if math.isfinite(value)]
    low, high = (min(found), max(found)) if found else _EMPTY
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    elif high > low:
        margin = _margin(low, high, ticks)
        low, high = (low - margin if low - margin > 0 or low < 0 else 0.0), high + margin
    if high <= low:  # one value
        low, high = (0.0, 1.0) if high == 0 else (min(0.0, 2 * low), max(0.0, 2 * high))
    step = _round_up((high - low) / ticks)
    first, last = (math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9))
    if first >= last:  # a fourth fits twice at least: rounding up not quite doubles it
        step = _round_up((high - low) / 4)
        first, last = (math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9))
    if from_zero:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        low, high = first * step, last * step
    digits = max(0, 2 - math.floor(math.log10(step)))
    return Axis(low, high, tuple(round(i * step, digits) for i in range(first, last + 1)))


def _margin(low: float, high: float, ticks: int) -> float:
    """Room beyond the values: a little, and so much that the ticks differ as they are written."""
    digits = TICK_DIGITS - 1 - math.floor(math.log10(max(-low, high)))
    last_digit = 10.0 ** -min(digits, _DECIMALS_MAX)
    return max((high - low) * _MARGIN, (ticks * _STEP_LEAST * last_digit - (high - low)) / 2)


def spanning(low: float, high: float, ticks: int = 6) -> Axis:
    """An axis from `low` to `high` and no further, with ticks at round numbers between."""
    if high <= low:
        high = low + 1.0
    step = _round_up((high - low) / ticks)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Axis(low, high, tuple(round(i * step, 9) for i in range(first, last + 1)))


def logarithmic(values: Iterable[float]) -> Axis:
    """A logarithmic axis over all values above 0, from a round number to a round number."""
    found = [value for value in values if math.isfinite(value) and value > 0]
    if not found:
        return linear(())
    rounds = [
        factor * 10.0**decade
        for decade in range(math.floor(math.log10(min(found))), math.ceil(math.log10(max(found))) + 1)
        for factor in (1, 2, 5)
    ]
    low = max(each for each in rounds if each <= min(found) * (1 + 1e-9))
    high = min((each for each in rounds if each >= max(found)), default=rounds[-1])
    if high <= low:
        high = 10 * low
    few = math.log10(high / low) > _DECADES_FOR_DECADES_ALONE
    shown = [each for each in rounds if low <= each <= high * (1 + 1e-9)]
    return Axis(low, high, tuple(each for each in shown if not few or _is_decade(each)), logarithmic=True)


def _is_decade(value: float) -> bool:
    return abs(math.log10(value) - round(math.log10(value))) < 1e-9


def _round_up(step: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of 10."""
    decade = 10.0 ** math.floor(math.log10(step))
    return next(factor * decade for factor in _STEPS if factor * decade >= step * (1 - 1e-9))
