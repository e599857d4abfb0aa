"""Labs that tests share: starting and ending a lab takes a second or two."""

from collections.abc import Iterator

import pytest

from testbed.machines.inventory import InventoryMachine, load_inventory
from testbed.machines.ssh.ssh import SshConnection
from tests.testbed.machines.lab import Lab, why_no_lab
from tests.testbed.machines.labs.logging_in import known_hosts, log_in


@pytest.fixture(scope="session")
def lab_works() -> None:
    """Skip the test with the reason if this machine cannot run a lab."""
    reason = why_no_lab()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def pair(lab_works: None) -> Iterator[Lab]:
    """Yield two machines, h0 and h1. Tests that change them must restore them."""
    with Lab(2) as lab:
        yield lab


@pytest.fixture
def own_home(pair: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the controller's home without known hosts and without an agent."""
    monkeypatch.setenv("HOME", str(pair.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    known_hosts(pair).unlink(missing_ok=True)
    yield
    known_hosts(pair).unlink(missing_ok=True)


@pytest.fixture
def machine(pair: Lab) -> InventoryMachine:
    """Return h0 with its fingerprint and the test's key, as in the inventory."""
    return load_inventory(pair.inventory).machines[0]


@pytest.fixture
def connection(pair: Lab, machine: InventoryMachine) -> Iterator[SshConnection]:
    with log_in(pair, machine) as connection:
        yield connection


@pytest.fixture
def through_h1(pair: Lab, machine: InventoryMachine) -> Iterator[None]:
    """Configure h1 as the jump host to h0."""
    config = pair.home / ".ssh/config"
    config.write_text(f"Host {machine.control}\n  ProxyJump root@{pair['h1'].control}\n")
    yield
    config.unlink()
