"""Compares settings: resolved experiments and topologies, versions and machines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.history.record import place_of
from analysis.pages.comparing.sides import ComparedRun
from analysis.pages.report.page import short_commit
from experiments.overrides import leaf_text, leaves
from experiments.records.run_record import RunRecord, record_to_json

PLACE = "place"
ASKED = ("experiment", "topology")
RAN = ("seed", "links", PLACE, "shaping", "commit", "versions", "machine", "tcp")
_PROSE = {"experiment.description", "topology.description"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One path and its value in each run; None if a run has no such setting."""

    path: str
    values: tuple[str | None, ...]

    @property
    def differs(self) -> tuple[bool, ...]:
        """For each run, whether its value differs from the first run's."""
        return tuple(value != self.values[0] for value in self.values)


@dataclass(frozen=True, slots=True)
class SettingDifferences:
    """The settings that differ, and the number of equal ones."""

    asked: tuple[Setting, ...]  # set by users
    ran: tuple[Setting, ...]  # versions, machine
    same: int


def settings(sides: Sequence[ComparedRun]) -> SettingDifferences:
    """Return the settings in which any run differs from the first."""
    asked, same_asked = _different(sides, ASKED)
    ran, same_ran = _different(sides, RAN)
    return SettingDifferences(asked, ran, same_asked + same_ran)


def _different(sides: Sequence[ComparedRun], keys: Sequence[str]) -> tuple[tuple[Setting, ...], int]:
    laid_out = [
        {
            path: (short_commit(str(value)) or "") if path == "commit" else leaf_text(value)
            for key in keys
            for path, value in leaves(_setting(side.record.run, key), key)
            if path not in _PROSE
        }
        for side in sides
    ]
    paths = list(dict.fromkeys(path for found in laid_out for path in found))
    every = [Setting(path, tuple(found.get(path) for found in laid_out)) for path in paths]
    different = tuple(each for each in every if any(each.differs))
    return different, len(every) - len(different)


def _setting(run: RunRecord, key: str) -> Any:
    return backend_text(run) if key == PLACE else record_to_json(run).get(key)


def backend_text(run: RunRecord) -> str:
    """Return where a run was executed: here, in virtual time, or on which machines."""
    names = [machine.name for machine in run.machines]
    noun = "machine" if len(names) == 1 else "machines"
    return f"{len(names)} {noun}: {', '.join(names)}" if names else place_of(run)
