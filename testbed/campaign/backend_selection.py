"""The backend of `--on`: this machine, virtual time, or the machines of an inventory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.backend_names import LOCAL, SIMULATOR

if TYPE_CHECKING:
    from testbed.backends.backend import Backend

OPTION = "--on"


def check_backend(name: str) -> None:
    """Check that the backend exists. Raises InputError, also if its inventory cannot be read."""
    from testbed.machines.inventory import load_inventory
    from topologies.errors import InputError

    if name in {LOCAL, SIMULATOR}:
        return
    if "/" not in name and not name.endswith((".yaml", ".yml")):
        raise InputError(
            OPTION,
            None,
            "",
            f"there is no backend {name}; known: {LOCAL}, {SIMULATOR}, or an inventory (YAML)",
        )
    load_inventory(Path(name))


@contextmanager
def open_backend(name: str, say: Callable[[str], None]) -> "Iterator[Backend]":
    """Yield the backend of this name, ready for runs. say: shows progress until then.

    Raises InputError, and MachineError if machines of an inventory are not usable.
    """
    if name == SIMULATOR:
        from testbed.backends.simulator import Simulator

        yield Simulator()
    elif name == LOCAL:
        from testbed.backends.backend import LocalBackend

        yield LocalBackend()
    else:
        from testbed.backends.ssh_hosts import SshBackend
        from testbed.campaign.texts.machines_table import show
        from testbed.machines.inventory import load_inventory

        with SshBackend(load_inventory(Path(name)), say, partial(show, aside=True)) as hosts:
            yield hosts
