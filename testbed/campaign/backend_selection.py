"""Where `--on` lets runs be carried out: here, in virtual time, or on the machines of an inventory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.backends.place import Place

LOCAL = "local"
SIMULATOR = "simulator"
OPTION = "--on"


def check_place(name: str) -> None:
    """Raises InputError if there is no such place, or its inventory cannot be read."""
    from testbed.machines.inventory import load_inventory
    from topologies.errors import InputError

    if name in {LOCAL, SIMULATOR}:
        return
    if "/" not in name and not name.endswith((".yaml", ".yml")):
        raise InputError(
            OPTION,
            None,
            "",
            f"there is no place {name}; known: {LOCAL}, {SIMULATOR}, or an inventory as machines.yaml",
        )
    load_inventory(Path(name))


@contextmanager
def opened(name: str, say: Callable[[str], None]) -> "Iterator[Place]":
    """The place of this name, ready for runs. say: shows what goes on until it is.

    Raises InputError, and MachineError if machines of an inventory cannot take part.
    """
    if name == SIMULATOR:
        from testbed.backends.simulator import Simulator

        yield Simulator()
    elif name == LOCAL:
        from testbed.backends.place import Local

        yield Local()
    else:
        from testbed.backends.ssh_hosts import SshHosts
        from testbed.campaign.machines_table import show
        from testbed.machines.inventory import load_inventory

        with SshHosts(load_inventory(Path(name)), say, partial(show, aside=True)) as hosts:
            yield hosts
