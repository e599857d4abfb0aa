"""What a series of runs is called in a history: the experiment, and what was changed of it, so that people
know it; a digest tells apart what would be called the same.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.sweep import value_text

ENTRY_MAX = 60
DIGEST_LETTERS = 8
AUTO = "auto"
"""The kind of links that nobody asked for."""


def series_name(experiment: str, changed: Mapping[str, Any], told_apart_by: Mapping[str, Any]) -> str:
    """A name as those of suites' entries: lower case letters, digits, - and _.

    changed: what is named, by dotted path. told_apart_by: what the digest is of; without it there is none.
    """
    from analysis.history.record import settings_json

    words = [f"{path.split('.')[-1]}-{_short(value)}" for path, value in sorted(changed.items())]
    name = _plain("-".join([experiment, *words]))
    if not told_apart_by and len(name) <= ENTRY_MAX:
        return name
    text = f"{experiment} {settings_json(told_apart_by)}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LETTERS]
    return f"{name[: ENTRY_MAX - 1 - len(digest)].strip('-')}-{digest}"


def is_file(value: Any) -> bool:
    """Whether a setting names a file of ours."""
    return isinstance(value, str) and value.endswith((".yaml", ".yml"))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")


def _short(value: Any) -> str:
    """A path's last part says enough."""
    return Path(value).stem if is_file(value) else value_text(value)
