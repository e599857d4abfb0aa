"""Deployment of images to the machines whose roles need them, to each at most once."""

from typing import IO, cast

from experiments.planned.plan import Plan
from node.core.program import Image
from systems.images.archives import ImageError
from systems.images.store import pack
from testbed.errors import MachineError
from testbed.machines.archive import Archive
from testbed.machines.inventory import InventoryMachine
from testbed.machines.parallel import all_or_raise, on_each
from testbed.machines.placement import Placement
from testbed.machines.software.deploy import code_folder, our_python, send_if_lacking
from testbed.machines.ssh.connection_pool import ConnectionPool
from testbed.machines.ssh.ssh import RemoteProcess, SshConnection

RECEIVER = "testbed.machines.software.image_receiving"
UNPACKING_TIMEOUT_S = 1800.0


def send_images(plan: Plan, placement: Placement, connections: ConnectionPool, archive: Archive) -> int:
    """Send images to machines, which have `archive`; returns the number of machines that lacked one.

    Raises MachineError or TestbedError with the errors of all machines that failed.
    """
    roles = plan.programs.roles if plan.programs else {}
    images = {process.host: roles[process.role].image for process in plan.processes if roles}

    def send(machine: InventoryMachine) -> bool:
        needed = {image.digest: image for host in placement.hosts(machine) if (image := images.get(host))}
        sent = [_send(connections.to(machine), archive, image) for image in needed.values()]
        return any(sent)

    return sum(all_or_raise(on_each(send, placement.machines)))


def _send(connection: SshConnection, archive: Archive, image: Image) -> bool:
    """Send an image to one machine; returns whether it had to be sent."""
    command = [*our_python(code_folder(connection.machine, archive)), "-m", RECEIVER, image.digest]

    def send(process: RemoteProcess) -> None:
        try:
            pack(image, cast("IO[bytes]", process))  # only `write` is called
        except ImageError as error:
            raise MachineError(f"{image.source} cannot be sent: {error}") from None

    return send_if_lacking(connection, command, send, f"the image {image.source}", UNPACKING_TIMEOUT_S)
