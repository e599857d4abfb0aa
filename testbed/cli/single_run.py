"""`cutset run` of an experiment that makes one run: plan, run, analyse, report, and say how it went."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from testbed.plan import Plan
    from testbed.sweeps import Chosen


def _warn(chosen: "Chosen", plan: "Plan", out: Path) -> None:
    """Say that this machine will hardly carry it, if earlier runs here tell so."""
    from testbed.cli.places import LOCAL
    from testbed.forecast import forecast

    expected = forecast(plan, out) if chosen.place == LOCAL else None
    warning = expected.warning() if expected is not None else None
    if warning is not None:
        click.echo(click.style(f"warning: {warning}", fg="yellow"), err=True)


def run_once(chosen: "Chosen", out: Path, *, analyze: bool, live: bool = False) -> int:
    """Returns the exit code. live: show it while it goes on."""
    from testbed.cli.following import follower
    from testbed.cli.outcome import exit_code, show_outcome
    from testbed.cli.performing import analyse, perform, write_page
    from testbed.cli.places import opened
    from testbed.cli.watching import Watching, watched
    from testbed.planning import make_plan
    from testbed.runner.start import prepare
    from testbed.sweeps import plain
    from topologies.loader import load_topology

    experiment = chosen.file.experiment
    topology = load_topology(experiment.topology)
    plan = make_plan(experiment, topology, seed=chosen.seed, links_kind=chosen.links)
    if live:
        plan = watched(plan)
    described = {"experiment": plain(experiment), "topology": plain(topology)}
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(opened(chosen.place, lambda text: click.echo(text, err=True)))
        plan = place.fitted(plan)
        place.check(out, plan)
        _warn(chosen, plan, out)
        run = prepare(out, plan, described)
        click.echo(f"run {run.path}", err=True)
        follow = stack.enter_context(follower())
        watching = stack.enter_context(Watching(run)) if live else None
        if watching is not None:
            follow.say("starting the live view")
            watching.await_ready(follow)
        ended = perform(run, place, follow, analyze=analyze, watching=watching)
        summary = analyse(run, ended, follow) if analyze else None
        if summary is not None:
            write_page(run, follow)
            if watching is not None:
                watching.show_report(summary["verdict"], follow)
    show_outcome(run, ended.content, summary)
    return exit_code(ended, summary, analyze=analyze)
