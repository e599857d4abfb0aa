"""Runs an experiment with a prompt in it: `cutset shell`. What is left is a run like any other."""

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from experiments.planned.plan import Plan
from experiments.records.capture_parts import join_all
from experiments.records.run_record import ShellRecord
from experiments.records.rundir import RunDirectory
from testbed.backends.backend import LocalBackend
from testbed.campaign.in_use import sole_writer
from testbed.campaign.one_run import Request, conclude, planned
from testbed.campaign.texts.outcome import exit_code, show_outcome
from testbed.campaign.texts.progress import Follower, follower
from testbed.faults.interactive import PLANNED_FAULTS, open_ended
from testbed.interrupts import handling
from testbed.run_selection import RunSelection
from testbed.runner.run_control import RunResult, carry_out, prepare
from topologies.errors import InputError
from topologies.loader import load_topology


def run_shell(chosen: RunSelection, out: Path, prompt: str, *, with_faults: bool, analyze: bool) -> int:
    """Returns the exit code. prompt: the module of its process. with_faults: those of the experiment happen.

    Raises InputError, MachineError, TestbedError, AnalysisError.
    """
    _refuse_background()
    run = _prepare(chosen, out, with_faults=with_faults)
    click.echo(f"run {run.path}", err=True)
    with sole_writer(run.path):
        with _terminal_kept():
            ended = _at_prompt(run, prompt)
        with follower() as follow:
            summary = conclude(run, ended, follow) if analyze else None
    show_outcome(run, ended.record, summary)
    return exit_code(ended, summary, analyze=analyze)


def _prepare(chosen: RunSelection, out: Path, *, with_faults: bool) -> RunDirectory:
    """The run's directory, with the experiment as it is to be tried on."""
    experiment = chosen.file.experiment
    topology = load_topology(experiment.topology)
    faults = experiment.all_faults(topology, chosen.seed)
    if faults:
        click.echo(f"the faults of {experiment.name} ({len(faults)}) happen as planned", err=True)
    elif set(PLANNED_FAULTS) & set(chosen.file.left_out):
        click.echo(f"the faults of {experiment.name} do not happen; --with-faults lets them", err=True)
    if experiment.arrivals or experiment.departures:
        click.echo(f"nobody of {experiment.name} comes or goes but by hand", err=True)
    experiment = open_ended(experiment, faults)
    also = {"shell": ShellRecord(with_faults)}
    request = Request(experiment, topology, chosen.seed, chosen.links, also)
    return prepare(out, planned(request, LocalBackend(), out, adapt=_in_parts), request.described())


def _in_parts(plan: Plan) -> Plan:
    """With captures in parts, so that `packets` finds the last seconds at once, however long it lasts."""
    captures = tuple(replace(capture, in_parts=capture.host is not None) for capture in plan.captures)
    return replace(plan, captures=captures)


def _at_prompt(run: RunDirectory, prompt: str) -> RunResult:
    """Carry out the run; a follower shows it but for the time when the prompt has the terminal."""
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
                        _say_nothing_if_it_is_gone()
                    following.append(shown.enter_context(follower()))
            elif following and message.get("did") != "running":
                following[0](message)

        ended = carry_out(run, hear, prompt=prompt)
        join_all(run.captures)
        return ended


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """The terminal is afterwards as it was, whatever happens at the prompt. Ctrl-Z would halt half of it."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    with handling({signal.SIGTSTP: signal.SIG_IGN}):
        try:
            yield
        finally:
            with contextlib.suppress(termios.error):  # it is gone
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _say_nothing_if_it_is_gone() -> None:
    """Who closes the terminal leaves the prompt too: the run is ended and analysed all the same."""
    if not sys.stdin.isatty():
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (for the rest of this process)


def _refuse_background() -> None:
    """What runs in another session than the terminal's would read it all the same."""
    if sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
        raise InputError("cutset shell", None, "", "needs the terminal: run it in the foreground")
