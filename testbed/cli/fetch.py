"""`cutset fetch`: bring here what of a run is still on its machines."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.campaign import exit_codes
from testbed.cli.options import run_argument

if TYPE_CHECKING:
    from experiments.rundir import RunDirectory
    from testbed.campaign.progress import Follower
    from testbed.machines.inventory import Inventory
    from testbed.machines.shipping.machine_receiver import Listener
    from testbed.machines.shipping.result import Progress


@click.command(name="fetch")
@run_argument
@click.option(
    "--on",
    "inventory",
    metavar="INVENTORY",
    type=click.Path(path_type=Path),
    help="The machines; those that the run was started on unless given.",
)
@click.option("--rate", metavar="RATE", help="What all machines together may send, as 200mbit.")
@click.option("--disk", metavar="SIZE", help="What the run's files may take here, as 50GB.")
def command(run_name: str, inventory: Path | None, rate: str | None, disk: str | None) -> int:
    """Bring here what of RUN is still on its machines, after a connection or this command's machine failed.

    What is here already is checked, not fetched again. Machines that have nothing more to give are cleared
    of RUN; those that it has not ended on are waited for until their lease is over. Exit codes: 0 all is
    here, 1 something is not, 2 bad input, 3 RUN cannot be written here, 130 interrupted.
    """
    from testbed.campaign.progress import follower
    from testbed.cli.named_run import named_run
    from testbed.machines.archive import machine_archive
    from testbed.machines.shipping.fetching import Fetch, not_all_here
    from testbed.machines.shipping.limits import Limits
    from testbed.machines.shipping.result import all_complete

    run = named_run(run_name)
    if not not_all_here(run):
        return _all_here(run)
    machines = _loaded(run, inventory)
    limits = Limits(
        _quantity("--rate", rate) if rate else machines.shipping.rate_bits_per_s,
        _quantity("--disk", disk) if disk else machines.shipping.disk_bytes,
    )
    again = f"to go on: cutset fetch {run.path}" + (f" --on {inventory}" if inventory else "")
    try:
        with follower() as follow:
            shipped = Fetch(run, machines, machine_archive(), limits, _shown_by(follow), follow.say).fetch()
    except KeyboardInterrupt:
        click.echo(f"What came is kept; {again}")
        raise
    for one in shipped.values():
        for line in one.lines():
            click.echo(line)
    if not all_complete(shipped):
        click.echo(f"Not everything is here; {again}")
        return exit_codes.FAILED
    return _all_here(run)


def _all_here(run: "RunDirectory") -> int:
    click.echo(f"All files of {run.name} are here: cutset analyze {run.path}")
    return exit_codes.FINE


def _loaded(run: "RunDirectory", given: Path | None) -> "Inventory":
    """The inventory that is given, or the one that the run was started with. Raises InputError."""
    from testbed.machines.inventory import load_inventory
    from topologies.errors import InputError

    if given is not None:
        return load_inventory(given)
    inventory = run.read_run().inventory
    noted = inventory.file if inventory is not None else "the inventory"
    if not Path(noted).is_file():
        problem = f"{noted}, with which it was started, is gone: name its machines' inventory with --on"
        raise InputError(str(run.path), None, "", problem)
    return load_inventory(Path(noted))


def _quantity(option: str, text: str) -> int:
    """Raises InputError."""
    from topologies.errors import InputError
    from topologies.quantities import parse_rate_bits_per_s, parse_size_bytes

    try:
        if option == "--rate":
            return parse_rate_bits_per_s(text)
        return parse_size_bytes(text, such_as="50GB")
    except ValueError as error:
        raise InputError(option, None, "", str(error)) from None


def _shown_by(follow: "Follower") -> "Listener":
    def show(progress: "Progress") -> None:
        follow(progress.as_message())

    return show
