"""Writes runs of tests into a history, so that they are compared with those of other nights.

A series is called after the experiment and what was changed of it, so that people know it; a digest tells
apart what would be called the same.
"""

import hashlib
import os.path
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.sweep import value_text
from testbed.campaign.made_runs import MadeRun
from testbed.sweeps import RunSelection

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


SUITE = "pytest"
"""The suite that runs of tests belong to."""


class Recorder:
    """Knows which history and which night. Runs of the same experiment with the same settings are a series,
    whichever tests they are for.
    """

    def __init__(self, folder: Path, night: str) -> None:
        """night: its date, as 2026-03-14."""
        from analysis.history import History

        self._history = History(folder)
        self._night = night

    def note(self, made: MadeRun, chosen: RunSelection, settings: Mapping[str, Any]) -> None:
        """A run that has a directory. Raises AnalysisError if the history cannot be written."""
        from analysis.history import record_of

        record = record_of(
            made.directory,
            night=self._night,
            suite=SUITE,
            entry=entry_of(chosen, settings),
            repeat=made.repetition,
            settings=settings,
        )
        self._history.append(record)

    def note_failed_start(
        self, problem: str, chosen: RunSelection, settings: Mapping[str, Any], repetition: int
    ) -> None:
        """A run that the machine could not start."""
        from analysis.history import record_of_failed_start

        record = record_of_failed_start(
            problem,
            night=self._night,
            suite=SUITE,
            entry=entry_of(chosen, settings),
            repeat=repetition,
            settings=settings,
            experiment=chosen.file.experiment.name,
            started_ns=time.time_ns(),
            seed=chosen.seed + repetition,
        )
        self._history.append(record)


def entry_of(chosen: RunSelection, settings: Mapping[str, Any]) -> str:
    """What a series of tests' runs is called: the place and the links count among what was changed."""
    experiment, folder = chosen.file.experiment, chosen.file.folder
    backend = {"on": chosen.backend} if chosen.backend != experiment.on else {}
    links = {"links": chosen.links} if chosen.links != AUTO else {}
    changed = {**settings, **backend, **links}
    lasting = {path: _lasting(value, folder) for path, value in changed.items()}
    return series_name(experiment.name, changed, lasting)


def _lasting(value: Any, folder: Path) -> Any:
    """A value that stays the same if a checkout moves: files count from the experiment's folder."""
    return os.path.relpath(value, folder) if is_file(value) and Path(value).is_absolute() else value
