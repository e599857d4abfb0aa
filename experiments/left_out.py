"""What a run's directory no longer has: removed to save room, or left behind when the run was packed.

run.json names it under `left_out`, with the reason, before anything is removed: what is torn by a crash in
between is named too.
"""

from collections.abc import Mapping
from typing import Any, Final

from experiments.rundir import RunDirectory
from topologies.errors import InputError

LEFT_OUT: Final = "left_out"
CAPTURES: Final = "captures"


def left_out(content: Mapping[str, Any]) -> dict[str, str]:
    """By part, why it is not there any more. content: of run.json."""
    found = content.get(LEFT_OUT)
    return dict(found) if isinstance(found, Mapping) else {}


def without(content: Mapping[str, Any], part: str, why: str) -> dict[str, Any]:
    """The content of run.json that names this part, too, as left out."""
    return {**content, LEFT_OUT: {part: why, **left_out(content)}}


def check_captures(run: RunDirectory) -> None:
    """Raises InputError if the run's captures were left out, so that it cannot be analysed again."""
    why = left_out(run.read_run()).get(CAPTURES)
    if why is not None:
        raise InputError(
            str(run.path),
            None,
            "",
            f"has no captures any more ({why}): its summary and report stand as they are",
        )
