"""SSH to real servers: accepted host keys of machines and of jump hosts."""

import re

import pytest

from testbed.errors import MachineError
from testbed.machines.inventory import InventoryMachine
from testbed.machines.ssh.ssh import SshConnection
from tests.testbed.machines.lab import Lab
from tests.testbed.machines.labs.keys import Key
from tests.testbed.machines.labs.logging_in import known_hosts, log_in, wait_until_nobody_is_logged_in

pytestmark = [pytest.mark.network, pytest.mark.machines, pytest.mark.usefixtures("own_home")]


def test_a_machine_with_the_inventorys_fingerprint_is_logged_in_to(connection: SshConnection) -> None:
    assert connection.run(["hostname"]).stdout == b"h0\n"


def test_a_machine_with_another_fingerprint_is_refused_with_both(
    pair: Lab, machine: InventoryMachine
) -> None:
    other = Key.new().fingerprint
    with pytest.raises(MachineError) as refusal:
        log_in(pair, machine, host_key=other)
    assert other in str(refusal.value)
    assert pair["h0"].host_key.fingerprint in str(refusal.value)


def test_the_command_in_the_refusal_adds_the_key(pair: Lab, machine: InventoryMachine) -> None:
    with pytest.raises(MachineError) as refusal:
        log_in(pair, machine, host_key=None)
    (command,) = re.findall(r"`(ssh-keyscan .*?)`", str(refusal.value))
    assert pair.run(["sh", "-c", command]).returncode == 0
    with log_in(pair, machine, host_key=None) as connection:
        assert connection.run(["hostname"]).stdout == b"h0\n"


def test_a_setting_that_would_accept_any_key_is_ignored(pair: Lab, machine: InventoryMachine) -> None:
    config = pair.home / ".ssh/config"
    config.write_text("Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n")
    try:
        with pytest.raises(MachineError, match="is unknown"):
            log_in(pair, machine, host_key=None)
    finally:
        config.unlink()


def test_a_jump_host_must_be_known(pair: Lab, machine: InventoryMachine, through_h1: None) -> None:
    with pytest.raises(MachineError, match=rf"{pair['h1'].control} is unknown"):
        log_in(pair, machine)


def test_a_machine_is_reached_through_another_and_both_connections_end_together(
    pair: Lab, machine: InventoryMachine, through_h1: None
) -> None:
    pair.know("h1")
    with log_in(pair, machine) as connection:
        assert connection.run(["hostname"]).stdout == b"h0\n"
    wait_until_nobody_is_logged_in(pair)


def test_a_changed_key_is_refused_until_the_old_one_is_removed(pair: Lab, machine: InventoryMachine) -> None:
    pair.know()
    before = pair["h0"].host_key.fingerprint
    pair["h0"].replace_host_key()
    try:
        with pytest.raises(MachineError, match="has CHANGED") as refusal:
            log_in(pair, machine, host_key=None)
        assert before in str(refusal.value)
        assert pair["h0"].host_key.fingerprint in str(refusal.value)
        (command,) = re.findall(r"`(ssh-keygen -R .*?)`", str(refusal.value))
        assert pair.run([*command.split(), "-f", known_hosts(pair)]).returncode == 0
        with pytest.raises(MachineError, match="is unknown"):
            log_in(pair, machine, host_key=None)
    finally:
        pair.write_inventory(pair.inventory.name)


def test_a_changed_key_of_a_jump_host_names_that_host(
    pair: Lab, machine: InventoryMachine, through_h1: None
) -> None:
    other, name = Key.new(), pair["h1"].control
    known_hosts(pair).write_text(f"{name} {other.public}\n")
    with pytest.raises(MachineError, match=rf"^h0: on the way there, {name}: .*has CHANGED") as refusal:
        log_in(pair, machine)
    assert f"`ssh-keygen -R {name}`" in str(refusal.value)


@pytest.mark.parametrize("how", ["known", "pinned", "known by another key"])
def test_a_revoked_key_is_always_refused(pair: Lab, machine: InventoryMachine, how: str) -> None:
    key = pair["h0"].host_key
    lines = {
        "known": f"{machine.control} {key.public}\n",
        "pinned": "",
        "known by another key": f"{machine.control} {Key.new().public}\n",
    }
    known_hosts(pair).write_text(f"{lines[how]}@revoked * {key.public}\n")
    with pytest.raises(MachineError, match=r"^h0: .*@revoked") as refusal:
        log_in(pair, machine, **({} if how == "pinned" else {"host_key": None}))
    assert key.fingerprint in str(refusal.value)
