"""`cutset fetch`: bring here what of a run is still on its machines."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli import exit_codes

if TYPE_CHECKING:
    from experiments.rundir import RunDirectory
    from testbed.cli.following import Follower
    from testbed.shipping.lane import Listener
    from testbed.shipping.result import Progress


@click.command(name="fetch")
@click.argument("run_name", metavar="RUN")
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

    RUN is a path, a name below runs/, or `latest`. What is here already is checked, not fetched again.
    Machines that have nothing more to give are cleared of the run. Exit codes: 0 all is here, 1 something is
    not.
    """
    from testbed.cli.following import follower
    from testbed.cli.named_run import named_run
    from testbed.hosts.archive import machine_archive
    from testbed.hosts.inventory import load_inventory
    from testbed.shipping.fetching import Fetch
    from testbed.shipping.limits import Limits
    from testbed.shipping.result import all_complete

    run = named_run(run_name)
    machines = load_inventory(inventory or _inventory_of(run))
    limits = Limits(
        _quantity("--rate", rate) if rate else machines.shipping.rate_bits_per_s,
        _quantity("--disk", disk) if disk else machines.shipping.disk_bytes,
    )
    with follower() as follow:
        shipped = Fetch(run, machines, machine_archive(), limits, _shown_by(follow), follow.say).fetch()
    for one in shipped.values():
        for line in one.lines():
            click.echo(line)
    if not all_complete(shipped):
        click.echo(f"Not everything is here; to go on: cutset fetch {run.path}")
        return exit_codes.FAILED
    click.echo(f"All files of {run.name} are here: cutset analyze {run.path}")
    return exit_codes.FINE


def _inventory_of(run: "RunDirectory") -> Path:
    """Where the run says its inventory is. Raises InputError."""
    from topologies.errors import InputError

    noted = run.read_run().get("inventory")
    if noted is None:
        problem = "was not on machines: there is nothing to fetch"
        raise InputError(str(run.path), None, "", problem)
    return Path(noted["file"])


def _quantity(option: str, text: str) -> int:
    """Raises InputError."""
    from topologies.errors import InputError
    from topologies.quantities import parse_rate_bits_per_s, parse_size_bytes

    try:
        return parse_rate_bits_per_s(text) if option == "--rate" else parse_size_bytes(text)
    except ValueError as error:
        raise InputError(option, None, "", str(error)) from None


def _shown_by(follow: "Follower") -> "Listener":
    def show(progress: "Progress") -> None:
        follow(progress.as_message())

    return show
