"""Writes runs of tests into a history, so that they are compared with those of other nights."""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.sweep import value_text
from testbed.cli.made_runs import MadeRun
from testbed.sweeps import Chosen

SUITE = "pytest"
"""The suite that runs of tests belong to."""
ENTRY_MAX = 60


class Recorder:
    """Knows which history and which night. Runs of the same experiment with the same settings are a series,
    whichever tests they are for.
    """

    def __init__(self, folder: Path, night: str) -> None:
        """night: its date, as 2026-03-14."""
        from analysis.history import History

        self._history = History(folder)
        self._night = night

    def note(self, made: MadeRun, chosen: Chosen, settings: Mapping[str, Any]) -> None:
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
        self, problem: str, chosen: Chosen, settings: Mapping[str, Any], repetition: int
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


def entry_of(chosen: Chosen, settings: Mapping[str, Any]) -> str:
    """What a series is called: the experiment, what was changed of it, and where it runs if not as it says.

    A name as those of suites' entries: lower case letters, digits, - and _.
    """
    experiment = chosen.file.experiment
    changed = [f"{path.split('.')[-1]}-{_short(value)}" for path, value in sorted(settings.items())]
    place = [_short(chosen.place)] if chosen.place != experiment.on else []
    text = "-".join([experiment.name, *place, *changed]).lower()
    return re.sub(r"[^a-z0-9_]+", "-", text)[:ENTRY_MAX].strip("-")


def _short(value: Any) -> str:
    """A path's last part says enough."""
    text = value_text(value)
    return Path(text).stem if text.endswith((".yaml", ".yml")) else text
