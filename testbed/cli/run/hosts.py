"""`cutset hosts`: checks the machines of an inventory, and shows how to get what is missing there."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.campaign.texts.machines_table import problem_lines, show

if TYPE_CHECKING:
    from testbed.errors import TestbedError
    from testbed.machines.archive import Archive
    from testbed.machines.cleanup import CleanupResult
    from testbed.machines.ssh.ssh import SshConnection


@click.command(name="hosts")
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option("--clean", is_flag=True, help="End leftover runs there, and remove fetched ones.")
def command(inventory: Path, clean: bool) -> int:
    """Check what the machines of INVENTORY can do, in parallel.

    Nothing is installed or changed there. With --clean, runs without a controller are ended; runs whose
    files are in runs/ here are removed there; and so is code of other versions.
    """
    from testbed.campaign import exit_codes
    from testbed.machines.archive import machine_archive
    from testbed.machines.checks import examine
    from testbed.machines.inventory import load_inventory
    from testbed.machines.ssh.connection_pool import connected

    loaded = load_inventory(inventory)
    archive = machine_archive()
    with connected(loaded.machines) as connections:
        if clean:
            _clean(connections, archive)
        examined = examine(loaded, connections, archive)
    show(examined)
    for line in problem_lines(examined):
        click.echo(line)
    unfit = [each.machine.name for each in examined if each.missing]
    if unfit:
        click.echo(f"cutset: not usable: {', '.join(unfit)}", err=True)
        return exit_codes.MACHINE
    click.echo("Every machine is usable for runs." if len(examined) > 1 else "It is usable for runs.")
    return 0


def _clean(connections: Sequence["SshConnection | TestbedError"], archive: "Archive") -> None:
    """Clean the reachable machines and print the result; the table shows why others are not reachable."""
    from experiments.records.rundir import RUNS
    from testbed.errors import TestbedError
    from testbed.machines.cleanup import clean

    reached = [connection for connection in connections if not isinstance(connection, TestbedError)]
    machines: dict[str, list[str]] = {}
    for connection, result in zip(reached, clean(reached, RUNS, archive), strict=True):
        if isinstance(result, TestbedError):
            click.echo(str(result))
            continue
        for line in cleared_lines(result):
            machines.setdefault(line, []).append(connection.machine.name)
    for line, names in machines.items():
        click.echo(f"{', '.join(names)}: {line}")


def cleared_lines(cleared: "CleanupResult") -> list[str]:
    """Return lines on what was done on a machine, and what stays there."""
    lines = [f"ended {run}, to which no controller was connected" for run in cleared.ended]
    lines += [f"removed {run}, because its files are here" for run in cleared.removed]
    lines += (
        [f"removed {cleared.code} other version{'s' * (cleared.code > 1)} of our code"]
        if cleared.code
        else []
    )
    lines += [f"kept {run}: it is in use" for run in cleared.in_use]
    lines += [
        f"kept {run} ({size / 1e6:.0f} MB): its files are not all here -> cutset fetch {run} --on INVENTORY"
        for run, size in cleared.kept.items()
    ]
    return lines or ["nothing to clean"]
