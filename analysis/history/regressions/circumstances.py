"""Differences between two nights other than the commit: settings, links, machine, versions.

For columns that hold JSON, each value that differs is given by its dotted path.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from experiments.overrides import leaf_text, leaves
from topologies.first_texts import listed

CIRCUMSTANCES: Final = ("experiment", "settings", "place", "links", "machine", "kernel", "python", "cutset")
"""Columns of the table `runs` that may explain a changed figure, besides the commit."""
SETTINGS: Final = "settings"
NESTED: Final = (SETTINGS, "machine")
"""The columns that hold JSON. Paths of settings are those of the experiment, without the column's name."""
SHOWN_MAX: Final = 4
LETTERS_MAX: Final = 40


def also_changed(good: Mapping[str, str], bad: Mapping[str, str]) -> tuple[str, ...]:
    """Return the differences, as `workload.rate 2000/s -> 1000/s`, `kernel 6.18.1 -> 6.18.4`.

    good, bad: texts by column.
    """
    return tuple(
        f"{path} {_shown(before.get(path), name)} -> {_shown(after.get(path), name)}"
        for name in CIRCUMSTANCES
        for before, after in [(_laid_out(name, good[name]), _laid_out(name, bad[name]))]
        for path in dict.fromkeys((*before, *after))
        if before.get(path) != after.get(path)
    )


def in_short(changes: Sequence[str]) -> str:
    """Return the first few differences and the number of the others."""
    return listed(changes, SHOWN_MAX)


def _laid_out(column: str, text: str) -> dict[str, Any]:
    """Return values by path; text that is not a JSON object is returned under the column's name."""
    if column in NESTED:
        with contextlib.suppress(ValueError):
            content = json.loads(text or "{}")
            if isinstance(content, dict):
                return dict(leaves(content, "" if column == SETTINGS else column))
    return {column: text}


def _shown(value: Any, column: str) -> str:
    if value in (None, ""):
        return "not set" if column == SETTINGS else "unknown"
    text = leaf_text(value)
    return text if len(text) <= LETTERS_MAX else f"{text[: LETTERS_MAX - 1]}…"
