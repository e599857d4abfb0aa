"""A controller as a program: ships a folder of each machine of an inventory, and prints the results.

    python -m tests.testbed.machines.shipping.controller INVENTORY FOLDER RUN [--how ship|sftp]
        [--follow FILE]

FOLDER is below each machine's `runs`. Prints "shipping" at the start, "connected NAME" for each connection
that a machine accepts, and at the end each machine's result as a line of JSON. sftp: use paramiko's sftp, for
comparison. --follow: the run is over when FILE exists.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from testbed.machines.archive import machine_archive
from testbed.machines.inventory import InventoryMachine, load_inventory
from testbed.machines.parallel import all_or_raise, on_each
from testbed.machines.shipping.limits import ShippingLimits
from testbed.machines.shipping.receiver import MachineSource, ship
from testbed.machines.shipping.result import MachineProgress, ShippingState
from testbed.machines.software.deploy import code_folder, deploy
from testbed.machines.ssh.connection_pool import connected
from testbed.machines.ssh.ssh import connect


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser()
    parser.add_argument("inventory", type=Path)
    parser.add_argument("folder")
    parser.add_argument("run", type=Path)
    parser.add_argument("--how", choices=["ship", "sftp"], default="ship")
    parser.add_argument("--follow", type=Path)
    given = parser.parse_args()
    inventory, archive = load_inventory(given.inventory), machine_archive()
    with connected(inventory.machines) as connections:
        deploy(all_or_raise(connections), archive)
    given.run.mkdir(exist_ok=True)
    sys.stdout.write("shipping\n")
    sys.stdout.flush()
    if given.how == "sftp":
        all_or_raise(on_each(lambda machine: sftp(machine, given.folder, given.run), inventory.machines))
        return
    shipped = ship(
        [
            MachineSource(
                machine,
                f"{machine.runs}/{given.folder}",
                code_folder(machine, archive),
                inventory.lease_us / 1e6,
                during_run=given.follow is not None,
            )
            for machine in inventory.machines
        ],
        given.run,
        limits=ShippingLimits(patience_s=1),
        listener=Connections().listen,
        stop_following=lambda _: given.follow is None or given.follow.exists(),
    )
    sys.stdout.write(json.dumps({name: asdict(one.shipment()) for name, one in shipped.items()}))


class Connections:
    """Tells of connections that stand."""

    def __init__(self) -> None:
        self._stand: dict[str, bool] = {}

    def listen(self, progress: MachineProgress) -> None:
        """See `ship`."""
        stands = progress.state in {ShippingState.FOLLOWING, ShippingState.SHIPPING, ShippingState.CHECKING}
        if stands and not self._stand.get(progress.machine, False):
            sys.stdout.write(f"connected {progress.machine}\n")
            sys.stdout.flush()
        self._stand[progress.machine] = stands


def sftp(machine: InventoryMachine, folder: str, run: Path) -> None:
    """All captures of a machine, one by one."""
    with connect(machine) as connection, connection._transport.open_sftp_client() as client:
        (run / "captures").mkdir(exist_ok=True)
        for name in client.listdir(f"{machine.runs}/{folder}/captures"):
            client.get(f"{machine.runs}/{folder}/captures/{name}", str(run / "captures" / name))


if __name__ == "__main__":
    main()
