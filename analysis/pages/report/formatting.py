"""Quantities as readable text: a sensible number of digits, and always the unit.

Pure functions from a number (or None) to text. A value that was not measured is "not measured", never 0.
Nothing here depends on HTML.

Also the titles of summary.json's headline numbers, and the text of their changes.
"""

import math
from collections.abc import Container, Sequence
from datetime import date

from experiments.records.summary import METRICS, RECOVERY

NOT_MEASURED = "not measured"
EN_DASH = "\u2013"  # between the ends of a range or a link
_THIN_SPACE = "\u202f"  # narrow and non-breaking: between groups of digits
_SPACE = "\u00a0"  # non-breaking: between number and unit
_LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
SMALL_CHANGE = 0.05
"""Smaller differences between two runs are shown without colour; repeats of a run differ by as much."""

_TITLES = {
    f"{section}.{name}": figure.title
    for section, figures in METRICS.items()
    for name, figure in figures.items()
}
_OF_FAULTS = {name: figure.title[:1].lower() + figure.title[1:] for name, figure in RECOVERY.items()}
STATUS_OF_CHANGE = {"better": "good", "worse": "bad"}
MINUS, TIMES_SIGN = "\u2212", "\u00d7"


def number(value: float | None, digits: int = 3) -> str:
    """Return `value` with about `digits` significant digits and grouped thousands."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", _THIN_SPACE if abs(value) >= 10_000 else "")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(decimals, 6)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace(",", _THIN_SPACE if abs(value) >= 10_000 else "")


def with_unit(value: float | None, unit: str, digits: int = 3) -> str:
    """Return `value` and its unit, unscaled."""
    text = number(value, digits)
    return text if text == NOT_MEASURED else f"{text}{_SPACE}{unit}"


def scaled(value: float | None, unit: str, digits: int = 3) -> str:
    """Return `value` with the decimal prefix that leaves one to three digits before the point: 1.25 GB/s."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    factor, prefix = next(
        ((f, p) for f, p in _PREFIXES if abs(value) >= f * 0.9995), (1.0, "")
    )  # 0.9995: 999.6 k rounds to 1 M
    return with_unit(_significant(value / factor, digits), prefix + unit, digits)


def large(value: float | None, noun: str) -> str:
    """Return a count, exact if it is whole and below a million: 53 886 events, 38.4 million deliveries."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    factor, word = next(((f, w) for f, w in _LARGE if abs(value) >= f * 0.9995), (1.0, ""))
    exact = not word and float(value).is_integer()
    shown = number(value if exact else _significant(value / factor, 3 if word else 4))
    return _SPACE.join(part for part in (shown, word, noun) if part)


def tick_text(value: float) -> str:
    """Return the text at an axis tick; the axis label has the unit: 0.02, 80 000, 2.5 M."""
    factor, prefix = next(
        ((f, p) for f, p in _PREFIXES if f >= 1e6 and abs(value) >= f * (1 - 1e-9)), (1.0, "")
    )
    return _SPACE.join(part for part in (number(round(value / factor, 9), 5), prefix) if part)


def day_text(day: date) -> str:
    """Return a date as 7 Mar 2026."""
    return f"{day.day}{_SPACE}{day:%b}{_SPACE}{day.year}"


def seconds(value: float | None) -> str:
    """Return a duration in seconds, with fewer decimals for longer ones."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    decimals = 3 if abs(value) < 0.1 else 2 if abs(value) < 60 else 1
    return f"{value:.{decimals}f}{_SPACE}s"


def short_time(time_s: float, digits: int = 4) -> str:
    """Return a time in a suitable unit."""
    factor, unit = next(
        ((factor, unit) for factor, unit in ((1.0, "s"), (1e-3, "ms")) if abs(time_s) >= factor), (1e-6, "µs")
    )
    return with_unit(float(f"{time_s / factor:.{digits}g}"), unit, digits)


def precise_seconds(value: float | None) -> str:
    """Return a time in seconds, to the millisecond."""
    return NOT_MEASURED if value is None or not math.isfinite(value) else f"{value:.3f}{_SPACE}s"


def percent(fraction: float | None) -> str:
    """Return a fraction of 1 as a percentage; a tiny one is not rounded to 0."""
    if fraction is None or not math.isfinite(fraction):
        return NOT_MEASURED
    if fraction == 0:
        return f"0{_SPACE}%"
    if abs(fraction) < 1e-4:
        return f"<0.01{_SPACE}%"
    return f"{number(_significant(fraction * 100, 2), 2)}{_SPACE}%"


def count_of(number_of: int, noun: str) -> str:
    """Return a number with the noun's singular or plural: 1 event, 2 proxies, 3 processes, 4 days."""
    to_ies = noun.endswith("y") and not noun.endswith(("ay", "ey", "oy"))
    plural = noun[:-1] + "ies" if to_ies else noun + ("es" if noun.endswith("s") else "s")
    word = noun if number_of == 1 else plural
    return f"{number(number_of)}{_SPACE}{word}"


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Return rows as lines in columns of equal width. right: numbers of the columns aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _significant(value: float, digits: int) -> float:
    if value == 0:
        return 0.0
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def title_of(metric: str) -> str:
    """Return the title of a metric: `recovery.cut.switch_s` is "cut: events flow again"."""
    if metric in _TITLES:
        return _TITLES[metric]
    section, _, rest = metric.partition(".")
    fault, _, last = rest.rpartition(".")
    if section == "recovery" and fault:
        return f"{fault}: {_OF_FAULTS.get(last, last)}"
    return metric


def value_text(value: float | None, unit: str) -> str:
    """Return a value with its unit."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    if unit == "s":
        return seconds(value)
    if unit == "number":
        return number(value)
    if not unit:  # a fraction
        return percent(value)
    if unit in {"B/s", "B"}:
        return scaled(value, unit)
    if unit in {"events/s", "events"}:
        return large(value, unit)
    return with_unit(value, unit)


def change_of(before: float | None, after: float | None) -> float | None:
    """Return the change as a fraction of the value before; None if undefined."""
    if before is None or after is None or not before or not math.isfinite(after / before):
        return None
    return after / before - 1


def change_text(change: float | None) -> str:
    """Return a signed percentage: +12 %, ±0 %; or a multiple, as x12, for large changes."""
    if change is None:
        return ""
    size = abs(change) * 100
    if size < 0.05:
        return "±0\u00a0%"
    digits = 0 if size >= 9.95 else 1
    if size >= 1000:
        return f"{TIMES_SIGN}{change + 1:.0f}"
    return f"{'+' if change > 0 else MINUS}{size:.{digits}f}\u00a0%"


def direction_of(change: float, better: str) -> str:
    """Return "better", "worse", or "" if neither; `better` as in `analysis.history.metrics`."""
    if not change or better not in {"lower", "higher"}:
        return ""
    return "better" if (change > 0) == (better == "higher") else "worse"
