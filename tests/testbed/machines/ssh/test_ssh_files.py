"""Configuration files for logins are read as ssh(1) does; errors are one line."""

import base64
import hmac
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import MachineError
from testbed.machines.inventory import InventoryMachine
from testbed.machines.ssh import host_keys, ssh_config
from testbed.machines.ssh.host_keys import read_known_hosts
from testbed.machines.ssh.ssh import connect
from tests.testbed.machines.labs.keys import Key
from tests.testbed.machines.test_findings import machine

KEY, OTHER = Key.new(), Key.new()  # new ones every time: no test may be named by them


@pytest.fixture(autouse=True)
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty ~/.ssh on a machine without SSH configuration."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(host_keys, "SYSTEM_FILE", tmp_path / "ssh_known_hosts")
    monkeypatch.setattr(ssh_config, "SYSTEM_CONFIG", tmp_path / "ssh_config")
    (tmp_path / ".ssh").mkdir()
    return tmp_path / ".ssh"


def known(host: str) -> list[str]:
    return [f"{key.get_name()} {key.get_base64()}" for key in read_known_hosts().keys(host).values()]


def hidden(host: str) -> str:
    salt = bytes(range(20))
    return "|1|" + "|".join(
        base64.b64encode(part).decode() for part in (salt, hmac.digest(salt, host.encode(), "sha1"))
    )


def way(**changes: Any) -> list[tuple[str, str, int]]:
    target: InventoryMachine = machine(0, control="h0", **changes)
    return [(hop.user, hop.host, hop.port) for hop in ssh_config.way_to(target)]


# known_hosts.


@pytest.mark.parametrize("names", ["h0", "other,h0", hidden("h0"), f"other,{hidden('h0')}"])
def test_a_host_is_known_by_any_of_its_names_plain_or_hashed(ssh: Path, names: str) -> None:
    (ssh / "known_hosts").write_text(f"{names}  {KEY.public} a comment\n[h0]:2222\t{OTHER.public}\n")
    assert known("h0") == [KEY.public]
    assert known("[h0]:2222") == [OTHER.public]
    assert known("h1") == []


def test_the_users_file_has_precedence_over_the_systems(ssh: Path, tmp_path: Path) -> None:
    (ssh / "known_hosts").write_text(f"h0 {KEY.public}\n")
    (tmp_path / "ssh_known_hosts").write_text(f"h0 {OTHER.public}\nh1 {OTHER.public}\n")
    assert known("h0") == [KEY.public]
    assert known("h1") == [OTHER.public]


def test_a_key_revoked_anywhere_is_never_accepted(ssh: Path, tmp_path: Path) -> None:
    (ssh / "known_hosts").write_text(f"h0 {KEY.public}\n")
    (tmp_path / "ssh_known_hosts").write_text(f"@revoked *.example.org {KEY.public}\n")
    assert known("h0") == []


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "# @revoked",
        f"@cert-authority * {OTHER.public}",
        "h0 sk-ssh-ed25519@openssh.com AAAAG",
        "h0 1024 35 14",
    ],
    ids=range(6),
)
def test_lines_without_hosts_are_ignored(ssh: Path, line: str) -> None:
    (ssh / "known_hosts").write_text(f"{line}\nh0 {KEY.public}\n")
    assert known("h0") == [KEY.public]


@pytest.mark.parametrize(
    "line",
    [
        "h1 ssh-ed25519",
        "h1 ssh-ed25519 !!!!",
        "h1 ssh-ed25519 AAAA",
        f"h1 ssh-rsa {KEY.public.split()[1]}",
        f"@trusted h1 {KEY.public}",
        "@revoked",
        "@revoked h1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
        f"|1|h1 {KEY.public}",
        f"|1|%%%|AAAA {KEY.public}",
    ],
    ids=range(9),
)
def test_a_line_that_cannot_be_read_is_named_by_file_and_number(ssh: Path, line: str) -> None:
    (ssh / "known_hosts").write_text(f"h0 {KEY.public}\n{line}\n")
    with pytest.raises(MachineError, match=rf"^{ssh}/known_hosts:2: this line cannot be read") as raised:
        read_known_hosts()
    assert str(raised.value).isprintable()


# ssh_config.


def test_the_route_follows_the_users_file_then_the_systems(ssh: Path, tmp_path: Path) -> None:
    (ssh / "config").write_text("Host h0\n  HostName 10.0.0.1\n  Port 2222\n")
    (tmp_path / "ssh_config").write_text("Host *\n  Port 99\nHost h0\n  ProxyJump me@gate\n")
    assert way(user="you", port=None) == [("me", "gate", 99), ("you", "10.0.0.1", 2222)]
    assert way(user="you", port=22)[1] == ("you", "10.0.0.1", 22)


@pytest.mark.parametrize("line", ["Host 'h0", "nonsense", "\udcff"])
def test_a_configuration_that_cannot_be_read_is_named_by_file_and_line(ssh: Path, line: str) -> None:
    (ssh / "config").write_text(f"Host *\n  Port 22\n{line}\n", errors="surrogateescape")
    with pytest.raises(MachineError, match=rf"^{ssh}/config:\d: "):
        connect(machine(0))


# Keys.


def test_a_missing_key_of_the_inventory_is_reported_before_connecting(ssh: Path) -> None:
    with pytest.raises(
        MachineError, match=rf"^h0: the inventory's key {ssh}/id cannot be read: No such file"
    ):
        connect(machine(0, key=ssh / "id"))


@pytest.mark.parametrize("option", ["Port many", "ForwardAgent /agent", "ConnectTimeout soon"])
def test_an_invalid_value_is_an_error_of_the_machine(ssh: Path, option: str) -> None:
    (ssh / "config").write_text(f"Host h0\n  {option}\n")
    with pytest.raises(MachineError, match=rf"^h0: {ssh}/config .* is invalid for h0: "):
        way()
