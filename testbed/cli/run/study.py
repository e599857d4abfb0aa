"""`cutset study`: experiments with very many machines in virtual time."""

import signal
from pathlib import Path

import click

from testbed.cli.options import out_option
from testbed.interrupts import handling, interrupt


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
@out_option
@click.option(
    "--resume",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Resume an interrupted study, and write its page again.",
)
def command(  # noqa: PLR0917 (click passes them by name)
    study: str | None, overrides: tuple[str, ...], seed: int, repeat: int, out: Path, resume: Path | None
) -> int | None:
    """Run a study at a paper's size, and show its numbers beside the paper's.

    Without STUDY, list the studies. With --repeat, seeds run in parallel, as many as fit into
    memory. `--set nodes=2000` makes one that takes seconds. Ctrl-C keeps the seeds that are done.
    """
    from experiments.campaigns.studies import chosen_study, listed_studies

    if resume is None and study is None:
        for name, description in listed_studies():
            click.echo(f"  {name:<30}  {description}")
        return None
    from experiments.campaigns.studydir import StudyDirectory
    from testbed.campaign.sweeps.study import go_on, run_study

    with handling({signal.SIGTERM: interrupt}):
        if resume is not None:
            return go_on(StudyDirectory(resume))
        system, name, parameters = chosen_study(str(study), overrides)
        return run_study(system, name, parameters, range(seed, seed + repeat), out)
