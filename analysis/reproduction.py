"""Judges the claims of a run by repeats of the same run: a claim holds, differs, or is undecided.

A claim is one run's figure, so it is compared with the interval of one more run, computed from the repeats
(`intervals.next_interval`). Hundreds of figures are compared and any may be far off by chance. Each interval
is therefore widened for all comparisons together (Bonferroni): if the run equals its repeats, the probability
that any figure is reported to differ is at most WRONG_MAX. Repeats that hardly differ among each other do not
show the variation between machines and days. So no interval is narrower than `within` of its middle, or than
the resolution of the history for that unit. Counts that are 0 in all repeats get no margin at all.

Words (a verdict, whether an expectation held) hold if any repeat had the same. Virtual time has no spread:
every repeat must equal the claim.

Facts that describe one run only (its name, its notes, the load of its machine, which period of a link
represents it) are not judged.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np

from analysis.claims import SummaryClaim, claim_holds, claims, is_number
from analysis.history.metrics import unit_of
from analysis.history.regressions.series import resolution_of
from analysis.intervals import next_interval

REPEATS_MIN: Final = 3
"""With fewer repeats the spread cannot be estimated."""
WITHIN: Final = 0.1
"""Default relative margin by which any figure may differ."""
WRONG_MAX: Final = 0.05
_OF_ONE_RUN: Final = frozenset({"schema", "run", "experiment", "seed", "links", "fidelity.cpu_max"})
_PROSE: Final = frozenset({"reasons", "notes", "problems", "unproven", "disagreements", "left_out"})
_WHICH_PERIOD: Final = frozenset({"direction", "from_s", "to_s"})
_LINKS: Final = "fidelity.links."


class ClaimVerdict(StrEnum):
    """Result of comparing a claim with the repeats."""

    HOLDS = "HOLDS"
    DIFFERS = "DIFFERS"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim with the values it was compared with.

    here: the median of the repeats, or their most frequent value. low, high: the interval of one more run;
    None for words, and for figures that too few repeats measured. why: the reason if undecided.
    """

    claim: SummaryClaim
    verdict: ClaimVerdict
    here: Any
    low: float | None = None
    high: float | None = None
    why: str = ""


def is_judged(figure: str) -> bool:
    """Return whether another run can confirm this figure at all."""
    parts = figure.split(".")
    if figure in _OF_ONE_RUN or not _PROSE.isdisjoint(parts):
        return False
    return not (figure.startswith(_LINKS) and parts[-1] in _WHICH_PERIOD)


def judge(
    claimed: Sequence[SummaryClaim],
    repeats: Sequence[Mapping[str, Any]],
    *,
    within: float = WITHIN,
    exact: bool = False,
) -> list[JudgedClaim]:
    """Return each claim that another run can confirm, with its verdict.

    repeats: summaries of the repeats that are reliable. within: see `WITHIN`. exact: whether the repeats ran
    in virtual time, from the seed of the run that makes the claims.
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


def _exactly(claim: SummaryClaim, values: Sequence[Any]) -> JudgedClaim:
    if not values:
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, None, why="no repeat was measured")
    other = [value for value in values if not claim_holds(claim, value)]
    return JudgedClaim(
        claim, ClaimVerdict.DIFFERS if other else ClaimVerdict.HOLDS, other[0] if other else values[0]
    )


def _judged(claim: SummaryClaim, values: Sequence[Any], level: float, within: float) -> JudgedClaim:
    if len(values) < REPEATS_MIN:
        reason = f"{len(values)} of the {REPEATS_MIN} required repeats were measured"
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, _most(values), why=reason)
    if not is_number(claim.value):
        holds = any(claim_holds(claim, each) for each in values)
        verdict = ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS
        return JudgedClaim(claim, verdict, _most(values))
    numbers = np.array([float(value) for value in values if is_number(value)])
    if numbers.size < REPEATS_MIN:
        reason = f"{numbers.size} of {len(values)} repeats have this figure"
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, _most(values), why=reason)
    middle = float(np.median(numbers))
    low, high = next_interval(numbers, level)
    room = _room(claim.figure, middle, within)
    low, high = min(low, middle - room), max(high, middle + room)
    own = abs(claim.bar or 0.0) + claim.tolerance
    verdict = ClaimVerdict.HOLDS if low - own <= claim.value <= high + own else ClaimVerdict.DIFFERS
    return JudgedClaim(claim, verdict, middle, low, high)


def _room(figure: str, middle: float, within: float) -> float:
    """Return the margin by which a figure may always differ, in its unit; 0 for a count of 0."""
    unit = unit_of(figure)
    resolved = resolution_of(figure, unit) if unit in {"s", "ms"} else 0.0
    return max(within * abs(middle), resolved)


def _most(values: Sequence[Any]) -> Any:
    """Return the median if all values are numbers, or else the most frequent value."""
    numbers = [float(value) for value in values if is_number(value)]
    if numbers and len(numbers) == len(values):
        return float(np.median(numbers))
    return Counter(values).most_common(1)[0][0] if values else None
