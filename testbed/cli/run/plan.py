"""`cutset plan`: the plan of a run, as text, as a picture or as JSON. Starts nothing."""

import json
from pathlib import Path

import click

from testbed.cli.options import FILE, ExperimentArguments, experiment_options, json_format
from testbed.cli.output import reader_may_leave, write_text


@click.command(name="plan")
@experiment_options
@click.option("--repeat", type=click.IntRange(1, 1000), help="Run each combination this many times.")
@click.option("--full", is_flag=True, help="Every host, link and command, however many.")
@json_format("the whole plan")
@click.option(
    "--svg",
    type=FILE,
    help="Also draw the network and its faults into this file.",
)
def command(
    given: ExperimentArguments, repeat: int | None, full: bool, as_json: bool, svg: Path | None
) -> None:
    """Show what would run: hosts, addresses, links, faults, commands, disk space; for a sweep, its runs.
    Nothing is started.

    EXPERIMENT is a name (see `cutset list`) or a YAML file.
    """
    from experiments.planned.plan import plan_to_json
    from testbed.campaign.texts.plan_text import plan_of, show_plan

    chosen = given.select(repeat=repeat)
    plan = plan_of(chosen)
    with reader_may_leave():
        if as_json:
            click.echo(json.dumps(plan_to_json(plan), indent=2))
        else:
            show_plan(chosen, full=full)
    if svg:
        from testbed.campaign.texts.plan_picture import plan_svg

        write_text(svg, plan_svg(plan))
        click.echo(f"picture {svg}", err=True)
