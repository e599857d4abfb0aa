"""`cutset fetch`: copies the files of a run that are still on its machines."""

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
    required=True,
    help="The machines of the run, and the limits of shipping: its inventory.",
)
def command(run_name: str, inventory: Path) -> int:
    """Fetch the files of RUN that are still on its machines, after a connection or this machine failed.

    Files that are already here are checked, not fetched again. RUN is removed from machines whose files are
    all here. If RUN has not ended on a machine, the command waits until the lease there expires. Exit codes:
    0 all files are here, 1 some are not, 2 bad input, 3 RUN cannot be written here, or another command uses
    it, 130 interrupted.
    """
    from testbed.campaign.fetch_run import run_fetch
    from testbed.cli.named_run import named_run

    return run_fetch(named_run(run_name), inventory)
