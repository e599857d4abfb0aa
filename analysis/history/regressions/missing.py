"""A figure that was measured on nearly all recent nights and no longer is, on runs that can be relied on.

`Never settled` and `the events never came` leave no number, and a run stays valid: what is worst about a
recovery is then the absence of its figure. As elsewhere three runs must agree, of tonight and of the nights
just before. Where every run of the recent nights had the figure, that is a fact and needs no further doubt;
where some had not, the rule of succession (Laplace) says how likely so many without it are by chance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from analysis.history.regressions.series import MEASURED, Series
from analysis.history.regressions.tonight import AGREEING_MIN, LEVEL_NIGHTS, NIGHTS_MIN

Measured = Mapping[str, Sequence[int]]
"""By night, oldest first, the rows of an entry's runs that can be relied on in the table `runs`."""


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A figure that is missing. nights: those without it, up to tonight. p: probability by chance. known: of
    the night before, likewise.
    """

    nights: tuple[str, ...]
    p: float
    known: float


def measured_nights(runs: pa.Table, until: str) -> dict[tuple[str, str], dict[str, list[int]]]:
    """By suite and entry, the nights up to this one with runs that can be relied on."""
    good = pc.and_(runs["valid"], pc.is_in(runs["verdict"], pa.array(MEASURED)))
    rows = pc.indices_nonzero(pc.and_(good, pc.less_equal(runs["night"], until)))
    columns = [runs[name].take(rows).to_pylist() for name in ("suite", "entry", "night")]
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for suite, entry, night, row in sorted(zip(*columns, rows.to_pylist(), strict=True)):
        found.setdefault((suite, entry), {}).setdefault(night, []).append(row)
    return found


def missing(series: Series, measured: Measured, night: str) -> MissingFigure | None:
    """Whether a figure is missing tonight that used to be there. measured: of the series' entry."""
    if night not in measured or series.dates[-1] >= night:
        return None
    without = tuple(date for date in measured if date > series.dates[-1])
    recent = [date for date in measured if date <= series.dates[-1]][-LEVEL_NIGHTS:]
    if len(recent) < NIGHTS_MIN:
        return None
    ran = sum(len(measured[date]) for date in recent)
    had = sum(
        int(count) for date, count in zip(series.dates, series.nights.runs, strict=True) if date >= recent[0]
    )
    lost = [len(measured[date]) for date in without]
    return MissingFigure(without, _chance(had, ran, sum(lost)), _chance(had, ran, sum(lost[:-1])))


def _chance(had: int, ran: int, lost: int) -> float:
    """That `lost` runs in a row lack a figure by chance, which `had` of `ran` before had."""
    if lost < AGREEING_MIN:
        return 1.0
    if had >= ran:
        return 0.0
    chance = 1.0
    for number in range(lost):
        chance *= (ran - had + 1 + number) / (ran + 2 + number)
    return chance
