"""Deployment of images to the machines whose roles need them, to each at most once."""

from typing import IO, cast

from experiments.planned.plan import Plan
from node.core.program import Image
from systems.images.archives import ImageError
from systems.images.store import pack
from testbed.errors import MachineError, TestbedError
from testbed.machines.archive import Archive
from testbed.machines.inventory import InventoryMachine
from testbed.machines.parallel import all_or_raise, on_each
from testbed.machines.placement import Placement
from testbed.machines.software.deploy import LINE_BYTES_MAX, code_folder, our_python
from testbed.machines.ssh.connection_pool import ConnectionPool
from testbed.machines.ssh.ssh import SshConnection, UnreachableError

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
    machine = connection.machine
    command = [*our_python(code_folder(machine, archive)), "-m", RECEIVER, image.digest]
    with connection.open(command, root=True) as process:
        process.timeout_s = UNPACKING_TIMEOUT_S
        answer = process.read_line(LINE_BYTES_MAX).strip()
        if answer == b"want":
            try:
                pack(image, cast("IO[bytes]", process))  # only `write` is called
            except ImageError as error:
                raise MachineError(f"{image.source} cannot be sent: {error}") from None
            except UnreachableError:
                pass  # it may have ended before it read all, with a reason
            process.end_input()
            answer = process.read_line(LINE_BYTES_MAX).strip()
        if answer not in {b"have", b"unpacked"}:
            process.wait()
            said = process.said() or "no error was reported"
            raise TestbedError(f"{machine.name}: cannot deploy the image {image.source}: {said}")
        return answer == b"unpacked"
