"""`cutset shell`: runs an experiment with a prompt. The result is a run like any other."""

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from experiments.records.run_record import ShellRecord
from experiments.records.rundir import RunDirectory
from testbed.backends.backend import LocalBackend
from testbed.campaign.in_use import sole_writer
from testbed.campaign.one_run import ExperimentRunRequest, conclude, planned
from testbed.campaign.texts.outcome import exit_code, show_outcome
from testbed.campaign.texts.progress import Follower, follower
from testbed.faults.interactive import PLANNED_FAULTS, open_ended
from testbed.interrupts import handling
from testbed.run_selection import RunSelection
from testbed.runner.run_control import RunResult, execute, prepare
from topologies.errors import InputError
from topologies.loader import load_topology

PROMPT = "testbed.shell"
"""The module of the prompt's process."""


def run_shell(chosen: RunSelection, out: Path, *, with_faults: bool, analyze: bool) -> int:
    """Run the experiment and return the exit code.

    with_faults: whether the experiment's faults happen. Raises InputError, MachineError, TestbedError,
    AnalysisError.
    """
    _refuse_background()
    run = _prepare(chosen, out, with_faults=with_faults)
    click.echo(f"run {run.path}", err=True)
    with sole_writer(run.path):
        with _terminal_restored():
            ended = _at_prompt(run)
        with follower() as follow:
            summary = conclude(run, ended.record, follow).summary if analyze else None
    show_outcome(run, ended.record, summary)
    return exit_code(ended, summary, analyze=analyze)


def _prepare(chosen: RunSelection, out: Path, *, with_faults: bool) -> RunDirectory:
    """Create the run's directory, with the experiment open-ended and with or without its faults."""
    experiment = chosen.file.experiment
    topology = load_topology(experiment.topology)
    faults = experiment.all_faults(topology, chosen.seed)
    if faults:
        click.echo(f"the faults of {experiment.name} ({len(faults)}) happen as planned", err=True)
    elif set(PLANNED_FAULTS) & set(chosen.file.left_out):
        click.echo(f"the faults of {experiment.name} do not happen; enable them with --with-faults", err=True)
    if experiment.arrivals or experiment.departures:
        click.echo(f"arrivals and departures of {experiment.name} happen only by command", err=True)
    experiment = open_ended(experiment, faults)
    also = {"shell": ShellRecord(with_faults)}
    request = ExperimentRunRequest(experiment, topology, chosen.seed, chosen.links, also)
    return prepare(out, planned(request, LocalBackend(), out), request.described())


def _at_prompt(run: RunDirectory) -> RunResult:
    """Execute the run; a follower shows it except while the prompt uses the terminal."""
    at_terminal = sys.stdin.isatty()
    with contextlib.ExitStack() as shown:
        following: list[Follower] = [shown.enter_context(follower())]

        def hear(message: dict[str, Any]) -> None:
            if message.get("did") == "prompt":
                if message["open"]:
                    shown.close()
                    following.clear()
                else:
                    if at_terminal:
                        _silence_if_terminal_is_gone()
                    following.append(shown.enter_context(follower()))
            elif following and message.get("did") != "running":
                following[0](message)

        return execute(run, hear, prompt=PROMPT)


@contextlib.contextmanager
def _terminal_restored() -> Iterator[None]:
    """Restore the terminal after the prompt. Ctrl-Z is ignored, because it would stop only some processes."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    with handling({signal.SIGTSTP: signal.SIG_IGN}):
        try:
            yield
        finally:
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _silence_if_terminal_is_gone() -> None:
    """Discard output if the user closed the terminal: the run is ended and analysed all the same."""
    if not sys.stdin.isatty():
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (for the rest of this process)


def _refuse_background() -> None:
    """Refuse to run in the background: the prompt's process has another session and reads the terminal
    anyway.
    """
    if sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
        raise InputError("cutset shell", None, "", "needs the terminal: run it in the foreground")
