"""The record of a run in the history, read from its run.json and, if present, its summary.json."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from analysis.errors import AnalysisError
from analysis.history.history_schemas import VERDICTS
from analysis.history.metrics import Metric, headline
from experiments.files.plain_name import plain_name
from experiments.records import run_record
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

NOT_STARTED = "not started"
"""Outcome of a run that could not be started. It has no directory."""
_SHOWN = (
    "path", "suite", "entry", "experiment", "commit", "cutset", "python", "kernel", "links", "place",
    "outcome",
)  # fmt: skip
"""Texts that are refused if they are not printable; a read of the history would refuse them too."""


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """An expectation and its result. value: the measured value, or None."""

    text: str
    value: float | None
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRecord:
    """A run in the history: a row of the table `runs` and its rows in the two other tables.

    night: its date, as 2026-03-14. path: its directory, or "" if there is none. settings: overrides by path.
    machine: hostname, cpus and memory_bytes, as far as known. place: local, simulator or hosts.
    allow_failure: whether the night passes even if this run fails.
    """

    night: str
    run: str
    path: str = ""
    suite: str
    entry: str
    experiment: str
    settings: Mapping[str, Any]
    seed: int
    repeat: int
    commit: str = ""
    cutset: str = ""
    python: str = ""
    kernel: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    links: str = ""
    place: str = ""
    outcome: str
    verdict: str
    valid: bool = False
    reasons: tuple[str, ...] = ()
    problems: tuple[str, ...]
    started_ns: int
    duration_s: float = 0.0
    captures_bytes: int = 0
    allow_failure: bool = False
    metrics: tuple[Metric, ...] = ()
    expectations: tuple[ExpectationResult, ...] = ()

    def __post_init__(self) -> None:
        check_night(self.night)
        try:
            plain_name(self.run, "")
        except InputError:
            raise AnalysisError(f"{self.run!r:.80} is not the name of a run's directory") from None
        if self.verdict not in VERDICTS:
            raise AnalysisError(f"{self.run}: {self.verdict!r:.80} is none of {', '.join(VERDICTS)}")
        shown = [(name, getattr(self, name)) for name in _SHOWN]
        for name, text in (*shown, *(("metric", metric.name) for metric in self.metrics)):
            if not text.isprintable():
                raise AnalysisError(f"{self.run}: its {name} cannot be shown: {text!r:.80}")


def known_night(night: str) -> bool:
    """Return whether this is a date such as 2026-03-14."""
    try:
        return date.fromisoformat(night).isoformat() == night
    except ValueError:
        return False


def check_night(night: str) -> None:
    """Raise AnalysisError if this is not a date such as 2026-03-14."""
    if not known_night(night):
        raise AnalysisError(f"{night!r} is not a night: write its date as 2026-03-14")


def record_from_run(
    run: RunDirectory,
    *,
    night: str,
    suite: str,
    entry: str,
    repeat: int,
    settings: Mapping[str, Any],
    allow_failure: bool = False,
) -> HistoryRecord:
    """Return the record of a run directory. Without a summary the verdict is `crashed`.

    Raises InputError if run.json, or an existing summary.json, cannot be read, has an unknown verdict, or has
    names that are not printable.
    """
    ran = run.read_run()
    summary = run.read_summary() if run.summary_json.exists() else {"verdict": "crashed"}
    verdict = str(summary.get("verdict"))
    if verdict not in VERDICTS:
        expected = f"expected one of {', '.join(VERDICTS)}"
        raise InputError(str(run.summary_json), None, "verdict", f"{expected}, found {verdict}")
    fidelity = _mapping(summary, "fidelity")
    try:
        return HistoryRecord(
            night=night,
            run=run.name,
            path=str(run.path.absolute()),
            suite=suite,
            entry=entry,
            experiment=ran.request.name,
            settings=dict(settings),
            seed=ran.seed,
            repeat=repeat,
            commit=ran.commit or "",
            cutset=ran.versions.get("cutset") or "",
            python=ran.versions.get("python") or "",
            kernel=ran.versions.get("kernel") or "",
            machine={name: value for name, value in asdict(ran.machine).items() if value is not None},
            links=ran.links,
            place=place_of(ran),
            outcome=ran.outcome or f"died while {ran.phase}",
            verdict=verdict,
            valid=bool(fidelity.get("valid", False)),
            reasons=tuple(map(str, fidelity.get("reasons") or ())),
            problems=ran.problems,
            started_ns=_started_ns(run, ran),
            duration_s=_duration_s(ran),
            captures_bytes=folder_bytes(run.captures),
            allow_failure=allow_failure,
            metrics=tuple(headline(summary)),
            expectations=tuple(map(_expectation_result, summary.get("expectations") or ())),
        )
    except AnalysisError as error:
        raise InputError(str(run.path), None, "", str(error)) from None


def record_of_failed_start(
    problem: str,
    *,
    night: str,
    suite: str,
    entry: str,
    repeat: int,
    settings: Mapping[str, Any],
    experiment: str,
    started_ns: int,
    seed: int = 0,
    allow_failure: bool = False,
) -> HistoryRecord:
    """Return the record of a run that could not be started and has no directory.

    Its outcome is `not started`.

    problem: the reason. started_ns: time of the attempt; it is part of the run's name, which distinguishes
    attempts.
    """
    tried = datetime.fromtimestamp(started_ns / 1e9, UTC)
    return HistoryRecord(
        night=night,
        run=f"{tried:%Y%m%dT%H%M%SZ}-{entry}-{repeat}-not-started",
        suite=suite,
        entry=entry,
        experiment=experiment,
        settings=dict(settings),
        seed=seed,
        repeat=repeat,
        outcome=NOT_STARTED,
        verdict="crashed",
        problems=(problem,),
        started_ns=started_ns,
        allow_failure=allow_failure,
    )


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder, subfolders included; 0 if it does not exist or is a link."""
    total, folders = 0, [] if folder.is_symlink() else [os.fspath(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:  # gone, or not readable
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):
                        total += entry.stat(follow_symlinks=False).st_size
    return total


def _mapping(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = content.get(key)
    return found if isinstance(found, Mapping) else {}


def place_of(ran: run_record.RunRecord) -> str:
    """Return where a run was executed: local, simulator or hosts."""
    if ran.simulated:
        return "simulator"
    return "hosts" if ran.machines else "local"


def _started_ns(run: RunDirectory, ran: run_record.RunRecord) -> int:
    """Return when the run was made.

    Virtual time has an arbitrary start, so simulated runs use the directory's name.
    """
    noted = ran.times.started_ns
    if noted is not None and not ran.simulated:
        return noted
    try:
        made = datetime.strptime(run.name.split("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return run.run_json.stat().st_mtime_ns
    return int(made.timestamp()) * 10**9


def _duration_s(ran: run_record.RunRecord) -> float:
    """Return the real time from start to end; 0 if the run did not reach its end."""
    if ran.simulation is not None:
        return ran.simulation.wall_s
    if ran.times.started_ns is None or ran.times.ended_ns is None:
        return 0.0
    return (ran.times.ended_ns - ran.times.started_ns) / 1e9


def _expectation_result(expectation: Mapping[str, Any]) -> ExpectationResult:
    value = expectation.get("value")
    number = float(value) if isinstance(value, bool | int | float) else None
    return ExpectationResult(str(expectation.get("text") or ""), number, bool(expectation.get("held")))


def settings_json(settings: Mapping[str, Any]) -> str:
    """Return overrides as the history stores them: equal settings always give equal text."""
    return json.dumps(settings, sort_keys=True, default=str)
