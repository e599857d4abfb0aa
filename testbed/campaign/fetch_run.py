"""Brings here what of a run is still on its machines: `cutset fetch`."""

from pathlib import Path

import click

from experiments.records.rundir import RunDirectory
from testbed.campaign import exit_codes
from testbed.campaign.in_use import sole_writer
from testbed.campaign.texts.progress import Follower, follower
from testbed.machines.archive import machine_archive
from testbed.machines.inventory import Inventory, load_inventory
from testbed.machines.shipping.fetching import Fetch, not_all_here
from testbed.machines.shipping.limits import Limits
from testbed.machines.shipping.machine_receiver import Listener
from testbed.machines.shipping.result import Progress, all_complete
from testbed.machines.started_runs import forget, inventory_of
from topologies.errors import InputError
from topologies.quantities import parse_rate_bits_per_s, parse_size_bytes


def run_fetch(run: RunDirectory, inventory: Path | None, rate: str | None, disk: str | None) -> int:
    """Fetch what is missing; returns the exit code.

    inventory: of its machines; None: the one that it was started with, if that was from here. rate, disk:
    limits, as `200mbit` and `50GB`; None: as the inventory says. Raises InputError, MachineError,
    KeyboardInterrupt.
    """
    with sole_writer(run.path):
        return _run_fetch(run, inventory, rate, disk)


def _run_fetch(run: RunDirectory, inventory: Path | None, rate: str | None, disk: str | None) -> int:
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


def _all_here(run: RunDirectory) -> int:
    forget(run)
    click.echo(f"All files of {run.name} are here: cutset analyze {run.path}")
    return exit_codes.FINE


def _loaded(run: RunDirectory, given: Path | None) -> Inventory:
    """The inventory that is given, or the one that this user started the run with from here.

    Whatever the run itself says does not count: it may come from others. Raises InputError.
    """
    if given is not None:
        return load_inventory(given)
    noted = inventory_of(run)
    if noted is None:
        problem = "was not started from here by you: name its machines' inventory with --on"
        raise InputError(str(run.path), None, "", problem)
    if not noted.is_file():
        problem = f"{noted}, with which it was started, is gone: name its machines' inventory with --on"
        raise InputError(str(run.path), None, "", problem)
    return load_inventory(noted)


def _quantity(option: str, text: str) -> int:
    """Raises InputError."""
    try:
        if option == "--rate":
            return parse_rate_bits_per_s(text)
        return parse_size_bytes(text, such_as="50GB")
    except ValueError as error:
        raise InputError(option, None, "", str(error)) from None


def _shown_by(follow: Follower) -> Listener:
    def show(progress: Progress) -> None:
        follow(progress.as_message())

    return show
