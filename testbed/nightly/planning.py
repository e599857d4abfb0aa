"""The plan of a night: its runs and their seeds, their estimated durations, and which runs still fit.

Runs nothing.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from experiments.backend_names import SIMULATOR
from experiments.campaigns.campaign import RunState
from experiments.campaigns.nights import NightRecord, NightRun, run_title
from experiments.campaigns.sweepdir import runs
from experiments.suite import SuiteEntry, SuiteFile
from testbed.sweeps import digest_of, plain
from topologies.errors import InputError
from topologies.loader import load_topology

SEED_BYTES = 4
WATCHED_SEED = 1
"""The seed of studies and watched sweeps, whose figures are compared between nights."""
TRIES_MAX = 3
"""How often a run may crash the whole night before it is left out."""
AROUND_A_RUN_S = 20.0
"""Time of a run besides its duration until it is measured: start, drain, analysis."""
ALONE = "runs of real processes go one at a time, because they would disturb each other's measurements"


def new_record(file: SuiteFile, night: date, *, commit: str | None, started_ns: int) -> NightRecord:
    """Return the first content of night.json. Raises InputError."""
    suite = file.suite
    return NightRecord(
        night=night.isoformat(),
        suite=suite.suite,
        digest=digest(file),
        commit=commit,
        budget_s=suite.budget_us / 1e6,
        started_ns=started_ns,
        runs=tuple(
            _planned(file, entry, night, repetition)
            for entry in suite.entries
            for repetition in range(entry.repeat)
        ),
    )


def seed_of(night: date, suite: str, entry: str, repeat: int) -> int:
    """Return the seed of a run: different each night and for each repetition, and reproducible."""
    text = f"{night.isoformat()}/{suite}/{entry}/{repeat}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=SEED_BYTES).digest(), "big") >> 1


def digest(file: SuiteFile) -> str:
    """Return a digest of all that determines what runs. Raises InputError."""
    content: list[list[Any]] = []
    for entry in file.suite.entries:
        if entry.study is not None:
            content.append([entry.name, list(file.studies[entry.name])])
            continue
        experiment = file.experiments[entry.name].experiment
        topology = load_topology(experiment.topology)
        content.append(
            [entry.name, entry.repeat, entry.links, file.place(entry), plain(experiment), plain(topology)]
            + ([entry.hunt_us] if entry.hunt_us is not None else [])
        )
    return digest_of(content)


def check_jobs(jobs: int, file: SuiteFile) -> None:
    """Refuse --jobs if no runs of the suite may run in parallel. Raises InputError."""
    if jobs > 1 and all(
        file.place(entry) != SIMULATOR or not entry.is_single for entry in file.suite.entries
    ):
        raise InputError("--jobs", None, "", f"{file.suite.suite} has nothing in virtual time, and {ALONE}")


class DurationEstimate:
    """Estimates how long the runs of a night take, in seconds, analysis included.

    The estimate is the longest of this night's runs of the same entry; without one, that of earlier nights;
    without those, the run's duration plus a margin.
    """

    def __init__(self, file: SuiteFile, earlier_s: Mapping[str, float]) -> None:
        """Estimate the durations. earlier_s: durations in earlier nights, by the entry's name."""
        self._first_s = {
            entry.name: earlier_s.get(entry.name, self._guess_s(file, entry)) for entry in file.suite.entries
        }

    def estimate_s(self, run: NightRun, record: NightRecord) -> float:
        """Return the estimate for a run."""
        tonight = [
            other.duration_s
            for other in record.runs
            if other.entry == run.entry and other.state is RunState.DONE and other.duration_s
        ]
        return max(tonight, default=self._first_s[run.entry])

    def left_s(self, record: NightRecord) -> float:
        """Return the estimate for all runs that have not ended."""
        return sum(self.estimate_s(run, record) for run in record.runs if not run.ended)

    @staticmethod
    def _guess_s(file: SuiteFile, entry: SuiteEntry) -> float:
        if entry.study is not None:
            return AROUND_A_RUN_S if entry.budget_us is None else entry.budget_us / 1e6
        experiment = file.experiments[entry.name].experiment
        guess_s = experiment.duration_us / 1e6 + AROUND_A_RUN_S
        if entry.hunt_us is not None:
            guess_s = entry.hunt_us / 1e6 + AROUND_A_RUN_S
        elif entry.sweep:
            guess_s *= len(runs(experiment.axes, experiment.repeat, 0))
        return guess_s if entry.budget_us is None else min(guess_s, entry.budget_us / 1e6 / entry.repeat)


def budget_left_s(run: NightRun, record: NightRecord, file: SuiteFile) -> float:
    """Return the longest that this run may take: the remaining budget of the night, and of its entry."""
    entry = next(entry for entry in file.suite.entries if entry.name == run.entry)
    night_s = record.budget_s - record.spent_s
    if entry.budget_us is None:
        return night_s
    spent_s = sum(other.duration_s or 0.0 for other in record.runs if other.entry == run.entry)
    return min(night_s, entry.budget_us / 1e6 - spent_s)


def skipped(run: NightRun, needed_s: float, left_s: float) -> NightRun:
    """Return the run, recorded as skipped."""
    problem = (
        f"no time left: it takes about {needed_s:.0f} s, and {max(0.0, left_s):.0f} s of the budget are left"
    )
    return replace(run, state=RunState.SKIPPED, problem=problem)


def _planned(file: SuiteFile, entry: SuiteEntry, night: date, repetition: int) -> NightRun:
    return NightRun(
        name=run_title(entry.name, repetition),
        entry=entry.name,
        repetition=repetition,
        seed=WATCHED_SEED if entry.is_watched else seed_of(night, file.suite.suite, entry.name, repetition),
        experiment=file.subject(entry),
        backend=file.place(entry),
        allow_failure=entry.allow_failure,
    )
