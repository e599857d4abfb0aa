"""Judges the claims of a run by the same run made again, several times: they hold, differ, or neither.

A claim is one run's figure, so it is held against what one more run would come to: the interval of the
repeats (`intervals.next_interval`). Hundreds of figures are looked at, and any may be far off by chance, so
that each interval is as wide as all of them together need (Bonferroni): of a run that is as its repeats,
anything at all is said to differ with a chance of WRONG_MAX. Repeats that hardly differ among each other know
little of other machines and other days: no interval is narrower than `within` of its middle, or than what the
history resolves of that unit. So counts that are 0 in all repeats have no room at all.

Words (a verdict, whether an expectation held) hold if any repeat came to them. Virtual time has no spread:
there every repeat must come to the claim itself.

What tells of one run alone (its name, its notes, how busy its machine was, which period of a link stands
for it) is not judged.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from analysis.claims import Claim, claims, holds, is_number
from analysis.history.metrics import unit_of
from analysis.history.regressions.series import resolution_of
from analysis.intervals import next_interval

REPEATS_MIN: Final = 3
"""Fewer have no spread worth the name."""
WITHIN: Final = 0.1
"""The part of itself by which a figure may differ in any case, unless told otherwise."""
WRONG_MAX: Final = 0.05
_OF_ONE_RUN: Final = frozenset({"schema", "run", "experiment", "seed", "links", "fidelity.cpu_max"})
_PROSE: Final = frozenset({"reasons", "notes", "problems", "unproven", "disagreements", "left_out"})
_WHICH_PERIOD: Final = frozenset({"direction", "from_s", "to_s"})
_LINKS: Final = "fidelity.links."


class Verdict(StrEnum):
    """What the repeats say of a claim."""

    HOLDS = "HOLDS"
    DIFFERS = "DIFFERS"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with what it was held against.

    here: the median of the repeats, or what most of them came to. low, high: the interval of one more run;
    None of words, and of figures that too few repeats measured. why: of one that is undecided.
    """

    claim: Claim
    verdict: Verdict
    here: Any
    low: float | None = None
    high: float | None = None
    why: str = ""


def is_judged(figure: str) -> bool:
    """Whether another run may be asked for this figure at all."""
    parts = figure.split(".")
    if figure in _OF_ONE_RUN or not _PROSE.isdisjoint(parts):
        return False
    return not (figure.startswith(_LINKS) and parts[-1] in _WHICH_PERIOD)


def judge(
    claimed: Sequence[Claim],
    repeats: Sequence[Mapping[str, Any]],
    *,
    within: float = WITHIN,
    exact: bool = False,
) -> list[Judged]:
    """Each claim that another run can be asked for, with its verdict.

    repeats: summaries of the repeats that can be relied on. within: see `WITHIN`. exact: whether they were
    made in virtual time, from the seed of the run that claims.
    """
    asked = [claim for claim in claimed if is_judged(claim.figure)]
    found = [{claim.figure: claim.value for claim in claims(summary)} for summary in repeats]
    here = {claim.figure: [each.get(claim.figure) for each in found] for claim in asked}
    if exact:
        return [_exactly(claim, here[claim.figure]) for claim in asked]
    varying = sum(_varies(values) for values in here.values())
    level = 1 - WRONG_MAX / max(1, varying)
    return [_judged(claim, here[claim.figure], level, within) for claim in asked]


def _varies(values: Sequence[Any]) -> bool:
    return len({value for value in values if is_number(value)}) > 1


def _exactly(claim: Claim, values: Sequence[Any]) -> Judged:
    if not values:
        return Judged(claim, Verdict.UNDECIDED, None, why="no repeat was measured")
    other = [value for value in values if not holds(claim, value)]
    return Judged(claim, Verdict.DIFFERS if other else Verdict.HOLDS, other[0] if other else values[0])


def _judged(claim: Claim, values: Sequence[Any], level: float, within: float) -> Judged:
    if len(values) < REPEATS_MIN:
        said = f"{len(values)} of the {REPEATS_MIN} repeats that it takes were measured"
        return Judged(claim, Verdict.UNDECIDED, _most(values), why=said)
    if not is_number(claim.value):
        verdict = Verdict.HOLDS if any(_is_same(claim.value, each) for each in values) else Verdict.DIFFERS
        return Judged(claim, verdict, _most(values))
    numbers = np.array([float(value) for value in values if is_number(value)])
    if numbers.size < REPEATS_MIN:
        said = f"{numbers.size} of {len(values)} repeats have this figure"
        return Judged(claim, Verdict.UNDECIDED, _most(values), why=said)
    middle = float(np.median(numbers))
    low, high = next_interval(numbers, level)
    room = _room(claim.figure, middle, within)
    low, high = min(low, middle - room), max(high, middle + room)
    own = abs(claim.bar or 0.0) + claim.tolerance
    verdict = Verdict.HOLDS if low - own <= claim.value <= high + own else Verdict.DIFFERS
    return Judged(claim, verdict, middle, low, high)


def _room(figure: str, middle: float, within: float) -> float:
    """By how much a figure may differ in any case, in its unit; a count of nothing by nothing."""
    unit = unit_of(figure)
    resolved = resolution_of(figure, unit) if unit in {"s", "ms"} else 0.0
    return max(within * abs(middle), resolved)


def _is_same(claimed: Any, found: Any) -> bool:
    return type(claimed) is type(found) and bool(claimed == found)


def _most(values: Sequence[Any]) -> Any:
    """What most came to: of numbers the median."""
    numbers = [float(value) for value in values if is_number(value)]
    if numbers and len(numbers) == len(values):
        return float(np.median(numbers))
    return Counter(values).most_common(1)[0][0] if values else None
