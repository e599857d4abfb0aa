"""`cutset fetch`: bring here what of a run is still on its machines."""

from pathlib import Path

import click

from testbed.cli.options import run_argument


@click.command(name="fetch")
@run_argument
@click.option(
    "--on",
    "inventory",
    metavar="INVENTORY",
    type=click.Path(path_type=Path),
    help="The machines. Not needed on the machine where the run was started, by the user who started it.",
)
@click.option("--rate", metavar="RATE", help="What all machines together may send, as 200mbit.")
@click.option("--disk", metavar="SIZE", help="What the run's files may take here, as 50GB.")
def command(run_name: str, inventory: Path | None, rate: str | None, disk: str | None) -> int:
    """Bring here what of RUN is still on its machines, after a connection or this command's machine failed.

    What is here already is checked, not fetched again. Machines that have nothing more to give are cleared
    of RUN; those that it has not ended on are waited for until their lease is over. Exit codes: 0 all is
    here, 1 something is not, 2 bad input, 3 RUN cannot be written here, or another command has it, 130
    interrupted.
    """
    from testbed.campaign.fetch_run import run_fetch
    from testbed.cli.named_run import named_run

    return run_fetch(named_run(run_name), inventory, rate, disk)
