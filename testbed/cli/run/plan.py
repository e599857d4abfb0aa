"""`cutset plan`: the plan of a run, as text or as JSON. Starts nothing."""

import json

import click

from testbed.cli.options import ExperimentArguments, experiment_options, json_format, on_option
from testbed.cli.output import reader_may_leave


@click.command(name="plan")
@experiment_options
@on_option
@click.option("--repeat", type=click.IntRange(1, 1000), help="Run each combination this many times.")
@click.option("--full", is_flag=True, help="Every host, link and command, however many.")
@json_format("the whole plan")
def command(
    given: ExperimentArguments, backend: str | None, repeat: int | None, full: bool, as_json: bool
) -> None:
    """Show what would run: hosts, addresses, links, faults, commands, disk space; for a sweep, its runs.
    Nothing is started.

    EXPERIMENT is a name (see `cutset list`) or a YAML file.
    """
    from experiments.planned.plan import plan_to_json
    from testbed.campaign.texts.plan_text import plan_of, show_plan

    chosen = given.select(backend, repeat)
    with reader_may_leave():
        if as_json:
            click.echo(json.dumps(plan_to_json(plan_of(chosen)), indent=2))
        else:
            show_plan(chosen, full=full)
