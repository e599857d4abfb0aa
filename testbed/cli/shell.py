"""`cutset shell`: an experiment's network with its nodes at work, and a prompt to provoke faults by hand."""

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.campaign.backend_selection import LOCAL
from testbed.cli.options import all_overrides, experiment_options, no_analyze_option, out_option
from testbed.interrupts import handling

if TYPE_CHECKING:
    from experiments.plan import Plan
    from experiments.rundir import RunDirectory
    from testbed.campaign.progress import Follower
    from testbed.runner.run_control import RunResult
    from testbed.sweeps import RunSelection

PROMPT = "testbed.cli.prompt"


@click.command(name="shell")
@experiment_options
@click.option("--with-faults", is_flag=True, help="Let the experiment's own faults happen too.")
@out_option
@no_analyze_option
def command(  # noqa: PLR0917 (click passes them by name)
    experiment: str,
    overrides: tuple[str, ...],
    topology: str | None,
    links: str,
    seed: int | None,
    with_faults: bool,
    out: Path,
    no_analyze: bool,
) -> int:
    """Bring an experiment's network up, let its nodes work, and provoke faults by hand at a prompt.

    The prompt is Mininet's (`r0-client-0 ping r3-proxy-0`, `nodes`, `net`, `sh`), with words of its own:
    `cut r2 r3`, `restore r2 r3`, `delay r0 r1 80ms`, `loss r0 r1 1%`, `kill r2/proxy-0`, `status`, `packets`;
    `help` lists them all. Lines may also come from a pipe or a file.

    The nodes work until you leave with `exit`, `quit` or Ctrl-D, whatever the experiment's `duration`; Ctrl-C
    only interrupts what goes on at the prompt. The experiment's own faults do not happen unless
    `--with-faults` is given (they must then begin within `duration`), and nothing that it expects is checked.
    What is left is a run like any other, with the faults by hand in its record, analysis and report.

    Exit codes: 0 the run passed, 1 it did not, 2 bad input, 3 this machine cannot do it, 130 interrupted.
    """
    from experiments.loader import read_experiment
    from testbed.faults.interactive import ignored_fields
    from testbed.sweeps import RunSelection

    leave_out = ignored_fields(with_faults=with_faults)
    file = read_experiment(experiment, all_overrides(overrides, topology), leave_out)
    chosen = RunSelection.of(file, backend=LOCAL, links=links, seed=seed, repeat=1)
    _refuse_background()
    return _run(chosen, out, with_faults=with_faults, analyze=not no_analyze)


def _run(chosen: "RunSelection", out: Path, *, with_faults: bool, analyze: bool) -> int:
    from testbed.campaign.one_run import conclude
    from testbed.campaign.outcome import exit_code, show_outcome
    from testbed.campaign.progress import follower

    run = _prepare(chosen, out, with_faults=with_faults)
    click.echo(f"run {run.path}", err=True)
    with _terminal_kept():
        ended = _at_prompt(run)
    with follower() as follow:
        summary = conclude(run, ended, follow) if analyze else None
    show_outcome(run, ended.record, summary)
    return exit_code(ended, summary, analyze=analyze)


def _prepare(chosen: "RunSelection", out: Path, *, with_faults: bool) -> "RunDirectory":
    """The run's directory, with the experiment as it is to be tried on."""
    from experiments.run_record import ShellRecord
    from testbed.backends.backend import LocalBackend
    from testbed.campaign.one_run import Request, planned
    from testbed.faults.interactive import PLANNED_FAULTS, open_ended
    from testbed.runner.run_control import prepare
    from topologies.loader import load_topology

    experiment = chosen.file.experiment
    topology = load_topology(experiment.topology)
    faults = experiment.all_faults(topology, chosen.seed)
    if faults:
        click.echo(f"the faults of {experiment.name} ({len(faults)}) happen as planned", err=True)
    elif set(PLANNED_FAULTS) & set(chosen.file.left_out):
        click.echo(f"the faults of {experiment.name} do not happen; --with-faults lets them", err=True)
    experiment = open_ended(experiment, faults)
    also = {"shell": ShellRecord(with_faults)}
    request = Request(experiment, topology, chosen.seed, chosen.links, also)
    return prepare(out, planned(request, LocalBackend(), out, adapt=_in_parts), request.described())


def _in_parts(plan: "Plan") -> "Plan":
    """With captures in parts, so that `packets` finds the last seconds at once, however long it lasts."""
    captures = tuple(replace(capture, in_parts=capture.host is not None) for capture in plan.captures)
    return replace(plan, captures=captures)


def _at_prompt(run: "RunDirectory") -> "RunResult":
    """Carry out the run; a follower shows it but for the time when the prompt has the terminal."""
    from experiments.capture_parts import join_all
    from testbed.campaign.progress import follower
    from testbed.runner.run_control import carry_out

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

        ended = carry_out(run, hear, prompt=PROMPT)
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
    from topologies.errors import InputError

    if sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
        raise InputError("cutset shell", None, "", "needs the terminal: run it in the foreground")
