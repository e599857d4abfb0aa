"""Claims of a run's summary: each figure and verdict by its path, and checks against another summary.

A claim holds if the same analysis of the same captures gives the same value. Strings and counts must be
equal. Other numbers may differ in the last digits, because of another processor's arithmetic.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from topologies.errors import InputError

RELATIVE: Final = 1e-9
"""Relative tolerance of a number that is not a count."""
NUMBER_MAX: Final = 1e300
"""Larger numbers are rejected: they are not plausible, and arithmetic on them overflows."""
_UNITS: Final = ("ms", "s")


@dataclass(frozen=True, slots=True)
class SummaryClaim:
    """A figure or verdict.

    figure: its path in summary.json, e.g. `recovery.cut.switch_s` or `fidelity.links.r2-r3.loss`; entries of
    lists are identified by name, or by index. bar: its error, in its own unit, if several clocks measured it.
    tolerance: by how much another analysis of the same captures may differ.
    """

    figure: str
    value: Any
    bar: float | None
    tolerance: float


@dataclass(frozen=True, slots=True)
class BrokenClaim:
    """A claim that does not hold: the claimed and the found value. None means that the value is absent."""

    figure: str
    claimed: Any
    found: Any


def claims(summary: Mapping[str, Any]) -> list[SummaryClaim]:
    """Return every figure and verdict of a summary."""
    return [SummaryClaim(path, value, bar, _tolerance(value)) for path, value, bar in _leaves(summary, "")]


def to_json(found: Sequence[SummaryClaim]) -> dict[str, Any]:
    """Return the content of claims.json."""
    return {"schema": 1, "claims": [asdict(claim) for claim in found]}


def claims_from_json(content: Mapping[str, Any], file: object) -> list[SummaryClaim]:
    """Return the claims that `to_json` wrote. The input is untrusted. file: the name used in errors.

    Raises InputError that names the first invalid claim.
    """
    given = content.get("claims")
    if not isinstance(given, list) or not given:
        raise InputError(str(file), None, "claims", "holds no claims")
    found = []
    for number, each in enumerate(given):
        if not isinstance(each, Mapping) or not _is_claim(each):
            problem = "is not a claim: it needs figure, value, bar and tolerance"
            raise InputError(str(file), None, f"claims.{number}", problem)
        found.append(SummaryClaim(each["figure"], each["value"], each["bar"], float(each["tolerance"])))
    figures = {claim.figure for claim in found}
    if len(figures) < len(found):
        raise InputError(str(file), None, "claims", "names a figure twice")
    return found


def _is_claim(each: Mapping[str, Any]) -> bool:
    figure, value, bar, tolerance = (each.get(key) for key in ("figure", "value", "bar", "tolerance"))
    is_plain = value is None or isinstance(value, str | bool) or is_number(value)
    is_exact_to = isinstance(tolerance, int | float) and is_number(tolerance) and tolerance >= 0
    return isinstance(figure, str) and is_plain and is_exact_to and (bar is None or is_number(bar))


def is_number(value: Any) -> bool:
    """Return whether a claim's value is a number of plausible size."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= NUMBER_MAX


def broken_claims(claimed: Mapping[str, Any], found: Mapping[str, Any]) -> list[BrokenClaim]:
    """Return the claims of one summary that another summary of the same captures does not confirm."""
    ours = {claim.figure: claim.value for claim in claims(found)}
    theirs = claims(claimed)
    wrong = [
        BrokenClaim(claim.figure, claim.value, ours.get(claim.figure))
        for claim in theirs
        if claim.figure not in ours or not claim_holds(claim, ours[claim.figure])
    ]
    unclaimed = ours.keys() - {claim.figure for claim in theirs}
    return wrong + [BrokenClaim(figure, None, ours[figure]) for figure in sorted(unclaimed)]


def claim_differences(content: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return, as messages, the differences between claims.json and a summary. The claims are untrusted."""
    given = content.get("claims")
    claimed = {
        each.get("figure"): each.get("value")
        for each in (given if isinstance(given, list) else [])
        if isinstance(each, Mapping) and isinstance(each.get("figure"), str)
    }
    ours = {claim.figure: claim for claim in claims(found)}
    wrong = [
        f"{figure} is {value}, and should be {ours[figure].value if figure in ours else 'nothing'}"
        for figure, value in claimed.items()
        if figure not in ours or not claim_holds(ours[figure], value)
    ]
    return wrong + [f"{figure} is missing" for figure in sorted(ours.keys() - claimed.keys())]


def claim_holds(claim: SummaryClaim, found: Any) -> bool:
    """Return whether a claim agrees with the value that the same analysis of the same captures found."""
    if isinstance(claim.value, float) and isinstance(found, int | float):
        return math.isclose(claim.value, found, rel_tol=0, abs_tol=claim.tolerance)
    return type(claim.value) is type(found) and bool(claim.value == found)


def _tolerance(value: Any) -> float:
    return abs(value) * RELATIVE if isinstance(value, float) else 0.0


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any, float | None]]:
    """Yield paths and values, each with its error bar if the same object has one."""
    within = f"{path}." if path else ""
    if isinstance(value, Mapping):
        for name, each in value.items():
            unit = next((unit for unit in _UNITS if str(name).endswith(f"_{unit}")), None)
            bar = value.get(f"error_{unit}") if unit and not str(name).startswith("error_") else None
            for place, leaf, own in _leaves(each, f"{within}{name}"):
                yield place, leaf, bar if own is None and not isinstance(each, Mapping | list) else own
    elif isinstance(value, list):
        yield f"{within}length", len(value), None
        for name, each in zip(_names(value), value, strict=True):
            yield from _leaves(each, f"{within}{name}")
    else:
        yield path, value, None


def _names(entries: Sequence[Any]) -> Sequence[Any]:
    """Return unique names of the entries of a list, or else their indices."""
    for key in ("name", "link"):
        names = [each.get(key) if isinstance(each, Mapping) else None for each in entries]
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return names
    return range(len(entries))
