"""`cutset plan`: the plan of a run, as text, as a picture or as JSON. Starts nothing."""

import json
from pathlib import Path

import click

from testbed.cli.options import experiment_options, read_chosen
from testbed.cli.output import reader_may_leave, write_text


@click.command(name="plan")
@experiment_options
@click.option("--repeat", type=click.IntRange(1, 1000), help="Number of runs of each combination.")
@click.option("--full", is_flag=True, help="Show every host, link and command.")
@click.option("--json", "as_json", is_flag=True, help="Show the whole plan as JSON.")
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw the network and its faults into this file.",
)
def command(  # noqa: PLR0917 (click passes them by name)
    experiment: str,
    overrides: tuple[str, ...],
    topology: str | None,
    links: str,
    seed: int | None,
    repeat: int | None,
    full: bool,
    as_json: bool,
    svg: Path | None,
) -> None:
    """Show what would run: hosts, addresses, links, faults, commands, disk space; for a sweep, its runs.
    Nothing is started.

    EXPERIMENT is a name (see `cutset list`) or a YAML file.
    """
    from experiments.plan import plan_to_json
    from testbed.campaign.plan_text import plan_of, show_plan
    from testbed.run_selection import RunSelection

    file = read_chosen(experiment, overrides, topology)
    chosen = RunSelection.of(file, backend=None, links=links, seed=seed, repeat=repeat)
    plan = plan_of(chosen)
    with reader_may_leave():
        if as_json:
            click.echo(json.dumps(plan_to_json(plan), indent=2))
        else:
            show_plan(chosen, full=full)
    if svg:
        from testbed.campaign.plan_picture import plan_svg

        write_text(svg, plan_svg(plan))
        click.echo(f"picture {svg}", err=True)
