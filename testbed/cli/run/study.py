"""`cutset study`: experiments with very many machines in virtual time."""

import signal
from pathlib import Path

import click
from click.core import ParameterSource

from testbed.cli.options import out_option
from testbed.interrupts import handling, interrupt
from topologies.errors import InputError


@click.command(name="study")
@click.argument("study", required=False)
@click.option(
    "--set", "overrides", multiple=True, metavar="NAME=VALUE", help="Set a parameter; may be repeated."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The first seed.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Number of seeds, each with its own network.",
)
@click.option("--all", "is_all", is_flag=True, help="Run every point of every study, as one list of jobs.")
@click.option("--paper", metavar="NAME", help="The same for the studies after one paper, as meghdoot.")
@click.option(
    "--publish", is_flag=True, help="Also put the numbers into the tables of docs/results/ of this checkout."
)
@click.option(
    "--master",
    metavar="URL",
    help="A Spark master whose executors see the study at its path, and run its seeds.",
)
@out_option
@click.option(
    "--resume",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Resume an interrupted study, sweep, or list of them, and write the pages again.",
)
def command(  # noqa: PLR0917 (click passes them by name)
    study: str | None,
    overrides: tuple[str, ...],
    seed: int,
    repeat: int,
    is_all: bool,
    paper: str | None,
    publish: bool,
    master: str | None,
    out: Path,
    resume: Path | None,
) -> int | None:
    """Run a study at a paper's size, and show its numbers beside the paper's.

    Without STUDY, list the studies. With --repeat, seeds run in parallel, as many as fit into
    memory. `--set nodes=2000` makes one that takes seconds. Ctrl-C keeps the seeds that are done.
    --all and --paper take no STUDY. They also run the experiments with figures of the papers, and
    write a page for each paper, in Markdown. --set takes fields of these experiments, too.
    """
    from experiments.campaigns.studies import (
        chosen_study,
        listed_studies,
        planned_studies,
        planned_sweeps,
        settings_of_lists,
    )

    is_list = is_all or paper is not None
    if (study is not None) + is_all + (paper is not None) > 1:
        raise InputError("study", None, "", "give a study, or --all, or --paper NAME")
    source = click.get_current_context().get_parameter_source
    given = [name for name in ("seed", "repeat") if source(name) is not ParameterSource.DEFAULT]
    if resume is not None and (study is not None or is_list or overrides or given):
        raise InputError("--resume", None, "", "resumes what was begun: give no study, --set or --seed")
    if resume is None and study is None and not is_list:
        if overrides or given or publish or master:
            raise InputError("study", None, "", "give a study, or --all, or --paper NAME")
        for name, description in listed_studies():
            click.echo(f"  {name:<30}  {description}")
        return None
    from testbed.campaign.sweeps.study import new_study, resume_study, run_studies

    with handling({signal.SIGTERM: interrupt}):
        seeds = range(seed, seed + repeat)
        if resume is None and is_list:
            of_studies, of_experiments = settings_of_lists(paper, overrides)
            plans = planned_studies(paper, of_studies)
            sweeps = planned_sweeps(paper, of_experiments)
            if not plans and not sweeps:
                problem = f"no study is after a paper {paper!r:.40}; `cutset study` lists all"
                raise InputError("--paper", None, "", problem)
            resume = run_studies(plans, sweeps, seeds, out)
        if resume is None:
            resume = new_study(chosen_study(str(study), overrides), seeds, out)
        return resume_study(resume, is_published=publish, master=master)
