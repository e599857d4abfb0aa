"""`cutset fetch`: copies the files of a run that are still on its machines."""

from pathlib import Path

import click

from experiments.records.rundir import RunDirectory
from testbed.campaign import exit_codes
from testbed.campaign.in_use import sole_writer
from testbed.campaign.texts.progress import follower
from testbed.machines.archive import machine_archive
from testbed.machines.inventory import load_inventory
from testbed.machines.shipping.fetching import RunFetch, not_all_here
from testbed.machines.shipping.limits import ShippingLimits
from testbed.machines.shipping.result import all_complete


def run_fetch(run: RunDirectory, inventory: Path) -> int:
    """Fetch the missing files and return the exit code.

    inventory: of the run's machines, with the limits. Raises InputError, MachineError, KeyboardInterrupt.
    """
    with sole_writer(run.path):
        if not not_all_here(run):
            return _all_here(run)
        machines = load_inventory(inventory)
        limits = ShippingLimits(machines.shipping.rate_bits_per_s, machines.shipping.disk_bytes)
        again = f"to continue: cutset fetch {run.path} --on {inventory}"
        try:
            with follower() as follow:
                fetch = RunFetch(run, machines, machine_archive(), limits, follow, follow.say)
                shipped = fetch.fetch()
        except KeyboardInterrupt:
            click.echo(f"The fetched files are kept; {again}")
            raise
        for one in shipped.values():
            for line in one.lines():
                click.echo(line)
        if not all_complete(shipped):
            click.echo(f"Some files are still missing; {again}")
            return exit_codes.FAILED
        return _all_here(run)


def _all_here(run: RunDirectory) -> int:
    click.echo(f"All files of {run.name} are here: cutset analyze {run.path}")
    return exit_codes.FINE
