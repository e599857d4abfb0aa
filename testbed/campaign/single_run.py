"""`cutset run` of an experiment that makes one run: plan, run, analyse, report, and say how it went."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from experiments.plan import Plan
    from testbed.sweeps import RunSelection


def _warn(chosen: "RunSelection", plan: "Plan", out: Path) -> None:
    """Say that this machine will hardly carry it, if earlier runs here tell so."""
    from testbed.campaign.backend_selection import LOCAL
    from testbed.forecast import forecast

    expected = forecast(plan, out) if chosen.backend == LOCAL else None
    warning = expected.warning() if expected is not None else None
    if warning is not None:
        click.echo(click.style(f"warning: {warning}", fg="yellow"), err=True)


def run_once(chosen: "RunSelection", out: Path, *, analyze: bool, live: bool = False) -> int:
    """Returns the exit code. live: show it while it goes on."""
    from testbed.campaign.backend_selection import open_backend
    from testbed.campaign.live_view import Watching, watched
    from testbed.campaign.one_run import Request, conclude, perform, planned
    from testbed.campaign.outcome import exit_code, show_outcome
    from testbed.campaign.progress import follower
    from testbed.runner.run_control import prepare
    from topologies.loader import load_topology

    experiment = chosen.file.experiment
    request = Request(experiment, load_topology(experiment.topology), chosen.seed, chosen.links)
    with contextlib.ExitStack() as stack:
        backend = stack.enter_context(open_backend(chosen.backend, lambda text: click.echo(text, err=True)))
        plan = planned(request, backend, out, **({"adapt": watched} if live else {}))
        _warn(chosen, plan, out)
        run = prepare(out, plan, request.described())
        click.echo(f"run {run.path}", err=True)
        follow = stack.enter_context(follower())
        watching = stack.enter_context(Watching(run)) if live else None
        if watching is not None:
            follow.say("starting the live view")
            watching.await_ready(follow)
        ended = perform(run, backend, follow, analyze=analyze, watching=watching)
        summary = conclude(run, ended, follow) if analyze else None
        if summary is not None and watching is not None:
            watching.show_report(summary["verdict"], follow)
    show_outcome(run, ended.content, summary)
    return exit_code(ended, summary, analyze=analyze)
