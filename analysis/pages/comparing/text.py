"""A comparison as text for the terminal: settings, then results, in columns."""

from collections.abc import Sequence

from analysis.pages.comparing.metrics import compared
from analysis.pages.comparing.settings import Setting, settings
from analysis.pages.comparing.sides import ComparedRun
from analysis.pages.report.formatting import aligned

_VALUE_WIDTH_MAX = 44
_ABSENT = "-"
_SIGNS = {"bad": "worse", "good": "better", "": ""}


def lines(sides: Sequence[ComparedRun]) -> list[str]:
    """Return the whole comparison as lines without colour."""
    output = [f"{side.letter}  {side.name}  {side.record.verdict}" for side in sides]
    for side in sides:
        doubts = () if side.record.valid else side.record.reasons
        output += [f"   {side.letter} is invalid: {reason}" for reason in doubts]
    found = settings(sides)
    output += ["", f"different settings ({found.same} are equal)"]
    output += _columns([_row(each) for each in (*found.asked, *found.ran)], sides) or ["  none"]
    found_numbers = compared(sides)
    output += ["", "results (compared with A)"]
    rows = [
        (
            row.title,
            *(
                "  ".join(filter(None, [value.text, value.change, _SIGNS[value.status]]))
                for value in row.values
            ),
        )
        for row in found_numbers
        if not row.nothing
    ]
    output += _columns(rows, sides) or ["  nothing was measured"]
    nothing = [row.title for row in found_numbers if row.nothing]
    return [*output, *([f"  0 in all runs: {', '.join(nothing)}"] if nothing else [])]


def _row(setting: Setting) -> tuple[str, ...]:
    return (setting.path, *(_cut(value or _ABSENT) for value in setting.values))


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE_WIDTH_MAX else text[: _VALUE_WIDTH_MAX - 1] + "…"


def _columns(rows: Sequence[Sequence[str]], sides: Sequence[ComparedRun]) -> list[str]:
    """Return rows in aligned columns under the runs' letters; empty if there are no rows."""
    if not rows:
        return []
    return [f"  {line}" for line in aligned([("", *(side.letter for side in sides)), *rows])]
