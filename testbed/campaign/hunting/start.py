"""Begins or continues a hunt: its experiment, the possible faults, and its folder."""

import contextlib
import shlex
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from experiments.backend_names import SIMULATOR
from experiments.files.sanitize import sanitize
from experiments.hunting.case_experiment import hunt_base
from experiments.hunting.drawing import CaseGenerator
from experiments.hunting.huntable import nemesis_of, refuse_unusable
from experiments.hunting.huntdir import HUNTS, HuntDirectory, HuntProgress
from experiments.hunting.settings import drawn_settings
from experiments.model import Experiment
from experiments.nemesis import Nemesis
from experiments.records.json_files import read_json, write_json
from experiments.records.rundir import RUNS
from testbed.backends.backend import LocalBackend
from testbed.campaign import exit_codes
from testbed.campaign.hunting.hunt import Hunt, HuntLimits
from testbed.campaign.hunting.worker import MODULE
from testbed.campaign.in_use import sole_writer
from testbed.campaign.jobs.pool import JobPool
from testbed.campaign.one_run import ExperimentRunRequest, planned
from testbed.errors import MachineError
from testbed.interrupts import handling, interrupt
from topologies.errors import InputError

CASE_S_MAX = 300.0
"""Seconds of this machine's time for one case in virtual time."""
DEATHS_MAX = 6
"""If more cases in a row get no answer, the hunt is ended as defective."""
REAL_FACTOR, REAL_S = 2.0, 240.0
"""The time limit of a case on real processes: this factor times its duration and drain, plus the seconds."""


@dataclass(frozen=True, slots=True)
class HuntRequest:
    """The user's request for a hunt.

    folder: of the hunt; None: a new one below `runs/hunts`. words: the arguments that repeat the request,
    without the folder. place: simulator, or local for real processes.
    """

    experiment: Experiment
    folder: Path | None
    limits: HuntLimits
    seed: int
    workers: int | None
    build: str | None
    modules: Sequence[Path]
    words: Sequence[str]
    place: str

    @property
    def command(self) -> list[str]:
        """The command that replays its findings, with the modules of their systems."""
        return ["cutset", *(word for module in self.modules for word in ("--system-module", str(module)))]


def hunt(request: HuntRequest) -> int:
    """Hunt and return the exit code. Raises InputError, MachineError, KeyboardInterrupt."""
    refuse_unusable(request.experiment, request.place)
    base, nemesis = hunt_base(request.experiment), nemesis_of(request.experiment)
    directory = _directory(request)
    with sole_writer(directory.path), contextlib.ExitStack() as stack:
        _check_same(directory, request, base, nemesis)
        click.echo(f"hunt {directory.path}", err=True)
        if unseen := [each.text for each in request.experiment.expect if each not in base.expect]:
            click.echo(f"not checked: {', '.join(map(sanitize, unseen))}", err=True)
        drawing = CaseGenerator(base, nemesis, drawn_settings(base, nemesis))
        setup = {
            "experiment": base.to_json(),
            "build": request.build,
            "modules": [str(module.absolute()) for module in request.modules],
            "place": request.place,
            "runs": str(directory.runs.absolute()),
        }
        stack.enter_context(handling({signal.SIGTERM: interrupt}))
        pool = stack.enter_context(_pool(request, setup, base, directory))
        before = directory.progress()
        hunting = Hunt(
            base,
            nemesis,
            drawing,
            directory,
            pool,
            limits=request.limits,
            seed=request.seed,
            is_certain=request.place == SIMULATOR,
            command=shlex.join(request.command),
            say=partial(click.echo, err=True),
        )
        try:
            hunting.execute()
        except KeyboardInterrupt:
            again = shlex.join([*request.command, "hunt", *request.words, "-o", str(directory.path)])
            click.echo(f"interrupted; continue with: {again}", err=True)
            raise
        click.echo(hunting.text(), err=True)
    return _summed_up(directory, before)


def _pool(request: HuntRequest, setup: dict[str, Any], base: Experiment, directory: HuntDirectory) -> JobPool:
    """Return the pool that runs cases: on real processes one at a time by default, since each uses the
    machine.

    Raises InputError, and MachineError if the machine lacks what runs need.
    """
    if request.place == SIMULATOR:
        return JobPool(MODULE, setup, request.workers, within_s=CASE_S_MAX, deaths_max=DEATHS_MAX)
    backend = LocalBackend()
    planned(ExperimentRunRequest.for_experiment(base, request.seed), backend, directory.runs)
    most_s = REAL_FACTOR * (base.duration_us + base.drain_us) / 1e6 + REAL_S
    workers = request.workers or 1
    return JobPool(MODULE, setup, workers, within_s=most_s, gently=True, deaths_max=DEATHS_MAX)


def _directory(request: HuntRequest) -> HuntDirectory:
    name = f"{request.experiment.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    directory = HuntDirectory(request.folder or RUNS / HUNTS / name)
    if directory.others:
        raise InputError(
            str(directory.path), None, "", f"is not the folder of a hunt: it contains {directory.others[0]}"
        )
    try:
        directory.make()
    except OSError as error:
        raise MachineError(f"cannot write the hunt at {directory.path}: {error.strerror}") from error
    return directory


def _check_same(directory: HuntDirectory, request: HuntRequest, base: Experiment, nemesis: Nemesis) -> None:
    """Raise InputError if the folder is of another hunt."""
    what: dict[str, Any] = {
        "experiment": base.to_json(),
        "nemesis": nemesis.model_dump(mode="json", by_alias=True, exclude_none=True),
        "seed": request.seed,
        "place": request.place,
    }
    if not directory.hunt_json.exists():
        if directory.progress_json.exists():
            problem = "is missing, so the hunt of this folder is unknown"
            raise InputError(str(directory.hunt_json), None, "", problem)
        write_json(directory.hunt_json, what)
        return
    there = read_json(directory.hunt_json)
    for field, value in what.items():
        if there.get(field) != value:
            problem = "is of another hunt: give another folder, or the same experiment and options"
            raise InputError(str(directory.hunt_json), None, field, problem)


def _summed_up(directory: HuntDirectory, before: HuntProgress) -> int:
    """Print the findings and return the exit code.

    Raises MachineError if there are none and no run of this session is usable (of all sessions, if this one
    had no runs).
    """
    found = directory.found()
    for folder, finding in found:
        click.echo(f"{folder}\n  {sanitize(finding['said'])}")
    progress = directory.progress()
    runs = progress.runs
    findings = f"{len(found)} finding{'s' if len(found) != 1 else ''}"
    click.echo(f"{findings} in {directory.path}, of {runs} run{'s' if runs != 1 else ''}")
    if not found and progress.usable_runs <= (before.usable_runs if runs > before.runs else 0):
        raise MachineError(f"{directory.path}: {progress.unusable_reason()}")
    return exit_codes.FAILED if found else exit_codes.FINE
