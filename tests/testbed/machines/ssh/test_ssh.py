"""SSH to real servers: logins, and connections that break."""

import subprocess
from pathlib import Path

import pytest

from testbed.errors import MachineError
from testbed.machines.inventory import InventoryMachine
from testbed.machines.ssh.ssh import SshConnection, UnreachableError, connect
from tests.testbed.leftovers import wait_until
from tests.testbed.machines.lab import Lab
from tests.testbed.machines.labs.keys import Key
from tests.testbed.machines.labs.logging_in import log_in, wait_until_nobody_is_logged_in

pytestmark = [pytest.mark.network, pytest.mark.machines, pytest.mark.usefixtures("own_home")]


def write_private_key(path: Path, key: Key) -> Path:
    path.touch(0o600)
    path.write_bytes(key.private)
    return path


def agent_answers() -> bool:
    """Return the exit code of ssh-add(1): 1 if the agent has no key, 2 if there is no agent."""
    return subprocess.run(["ssh-add", "-l"], capture_output=True, check=False).returncode == 1


# Who logs in.


def test_a_rejected_key_is_an_error_without_a_password_attempt(
    pair: Lab, machine: InventoryMachine, tmp_path: Path
) -> None:
    (pair.home / ".ssh/id_ed25519").rename(tmp_path / "aside")  # it is tried of itself
    said = len(pair["h0"].log())
    try:
        stranger = write_private_key(tmp_path / "stranger", Key.new())
        with pytest.raises(MachineError, match="accepts none of our keys"):
            log_in(pair, machine, key=stranger)
    finally:
        (tmp_path / "aside").rename(pair.home / ".ssh/id_ed25519")
    wait_until_nobody_is_logged_in(pair)  # the server has written down what became of it
    tried = pair["h0"].log()[said:]
    assert "Failed publickey" in tried
    assert "password" not in tried


def test_a_jump_host_that_rejects_all_keys_is_named(
    pair: Lab, machine: InventoryMachine, through_h1: None
) -> None:
    pair.know("h1")
    config = pair.home / ".ssh/config"
    config.write_text(config.read_text().replace("root@", "nobody-there@"))
    who = f"nobody-there@{pair['h1'].control}"
    with pytest.raises(MachineError, match=rf"^h0: on the way there, .*: {who} accepts none of our keys"):
        log_in(pair, machine)


@pytest.mark.parametrize("content", [b"no key\n", b"\x93\xff\x00"])
def test_an_invalid_key_file_is_not_reported_as_an_unreachable_machine(
    pair: Lab, machine: InventoryMachine, tmp_path: Path, content: bytes
) -> None:
    (pair.home / ".ssh/id_ed25519").rename(tmp_path / "aside")  # it is tried of itself
    (tmp_path / "key").write_bytes(content)
    try:
        with pytest.raises(MachineError, match=r"^h0: .*key"):
            log_in(pair, machine, key=tmp_path / "key")
        with pytest.raises(MachineError, match="accepts none of our keys"):
            log_in(pair, machine, key=None)
    finally:
        (tmp_path / "aside").rename(pair.home / ".ssh/id_ed25519")


def test_the_agents_key_logs_in(
    pair: Lab, machine: InventoryMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket, own = tmp_path / "agent", pair.home / ".ssh/id_ed25519"
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL) as agent:
        try:
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            wait_until(agent_answers, "the agent")
            subprocess.run(["ssh-add", "-q", own], check=True)
            own.rename(tmp_path / "aside")
            with log_in(pair, machine, key=None) as connection:
                assert connection.run(["hostname"]).stdout == b"h0\n"
        finally:
            if not own.exists():
                (tmp_path / "aside").rename(own)
            agent.terminate()


# Broken connections.


def test_a_broken_connection_is_reported_as_lost(connection: SshConnection, pair: Lab) -> None:
    with connection.open(["sleep", "60"]) as process:
        pair["h0"].kill_connections()
        with pytest.raises(UnreachableError):
            process.read(1)
    with pytest.raises(UnreachableError, match=r"^h0: "):
        connection.run(["true"])
    assert not connection.alive
    pair["h0"].end("sleep 60")


@pytest.mark.parametrize("change", [{"user": "no-such-user"}, {"host_key": Key.new().fingerprint}])
def test_a_refused_login_leaves_no_connection(
    pair: Lab, machine: InventoryMachine, change: dict[str, str]
) -> None:
    with pytest.raises(MachineError):
        log_in(pair, machine, **change)
    wait_until_nobody_is_logged_in(pair)


def test_a_machine_that_is_silently_cut_off_is_unreachable_until_it_is_back(
    pair: Lab, machine: InventoryMachine
) -> None:
    pair["h0"].cut_control()
    try:
        with pytest.raises(UnreachableError, match=r"^h0: cannot be reached"):
            pair.on_controller(lambda: connect(machine, timeout_s=1.0))
    finally:
        pair["h0"].restore_control()
    with log_in(pair, machine) as again:
        assert again.run(["hostname"]).stdout == b"h0\n"
