"""SSH to real servers: who logs in how, and what becomes of remote commands."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.errors import MachineError, TestbedError
from testbed.hosts.inventory import Machine, load_inventory
from testbed.hosts.ssh import Connection, UnreachableError, connect
from tests.testbed.hosts.keys import Key
from tests.testbed.hosts.lab import Lab
from tests.testbed.hosts.logging_in import log_in, wait_until_nobody_is_logged_in
from tests.testbed.leftovers import wait_until

pytestmark = [pytest.mark.network, pytest.mark.usefixtures("own_home")]

AWKWARD = [
    "",
    " ",
    "two words",
    "it's",
    '"double"',
    "back\\slash",
    "new\nline",
    "tab\t",
    "$(touch /tmp/ran)",
    "`touch /tmp/ran`",
    "$HOME",
    "${IFS}",
    "; touch /tmp/ran",
    "| cat",
    "> /tmp/ran",
    "* ? [a-z]",
    "~",
    "~root",
    "-n",
    "--",
    "#comment",
    "!history",
    "a&b",
    "{a,b}",
    "ünïcödé ☃",
    "\x01\x7f",
]


def write_private_key(path: Path, key: Key) -> Path:
    path.touch(0o600)
    path.write_bytes(key.private)
    return path


@contextmanager
def bashrc(lab: Lab, text: str) -> Iterator[None]:
    """h0's login shell reads this first."""
    lab["h0"].run(["sh", "-c", "cat >/root/.bashrc"], input=text)
    yield
    lab["h0"].run(["rm", "/root/.bashrc"])


@pytest.fixture
def talkative(pair: Lab) -> Iterator[None]:
    with bashrc(pair, "echo hello; printf 'no end of line'\n"):
        yield


# Who logs in.


def test_a_key_that_the_machine_does_not_take_is_refused_with_no_password_tried(
    pair: Lab, machine: Machine, tmp_path: Path
) -> None:
    (pair.home / ".ssh/id_ed25519").rename(tmp_path / "aside")  # it is tried of itself
    said = len(pair["h0"].log())
    try:
        stranger = write_private_key(tmp_path / "stranger", Key.new())
        with pytest.raises(MachineError, match="takes none of our keys"):
            log_in(pair, machine, key=stranger)
    finally:
        (tmp_path / "aside").rename(pair.home / ".ssh/id_ed25519")
    tried = pair["h0"].log()[said:]
    assert "Failed publickey" in tried
    assert "password" not in tried


def test_a_machine_on_the_way_that_takes_none_of_our_keys_is_named(
    pair: Lab, machine: Machine, through_h1: None
) -> None:
    pair.know("h1")
    config = pair.home / ".ssh/config"
    config.write_text(config.read_text().replace("root@", "nobody-there@"))
    who = f"nobody-there@{pair['h1'].control}"
    with pytest.raises(MachineError, match=rf"^h0: on the way there, .*: {who} takes none of our keys"):
        log_in(pair, machine)


@pytest.mark.parametrize("content", [b"no key\n", b"\x93\xff\x00"])
def test_a_file_that_holds_no_key_is_not_taken_for_a_machine_that_is_down(
    pair: Lab, machine: Machine, tmp_path: Path, content: bytes
) -> None:
    (pair.home / ".ssh/id_ed25519").rename(tmp_path / "aside")  # it is tried of itself
    (tmp_path / "key").write_bytes(content)
    try:
        with pytest.raises(MachineError, match=r"^h0: .*key"):
            log_in(pair, machine, key=tmp_path / "key")
        with pytest.raises(MachineError, match="takes none of our keys"):
            log_in(pair, machine, key=None)
    finally:
        (tmp_path / "aside").rename(pair.home / ".ssh/id_ed25519")


def test_a_key_with_a_passphrase_is_refused_without_asking_for_it(
    pair: Lab, machine: Machine, tmp_path: Path
) -> None:
    locked = write_private_key(tmp_path / "locked", pair.key)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", locked], check=True)
    (pair.home / ".ssh/id_ed25519").rename(tmp_path / "aside")
    try:
        with pytest.raises(MachineError, match="agent"):
            log_in(pair, machine, key=locked)
    finally:
        (tmp_path / "aside").rename(pair.home / ".ssh/id_ed25519")


def test_the_agents_key_logs_in(
    pair: Lab, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket, own = tmp_path / "agent", pair.home / ".ssh/id_ed25519"
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL) as agent:
        try:
            wait_until(socket.is_socket, "the agent")
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            subprocess.run(["ssh-add", "-q", own], check=True)
            own.rename(tmp_path / "aside")
            with log_in(pair, machine, key=None) as connection:
                assert connection.run(["hostname"]).stdout == b"h0\n"
        finally:
            if not own.exists():
                (tmp_path / "aside").rename(own)
            agent.terminate()


# Remote commands.


def test_arguments_arrive_as_they_are(connection: Connection) -> None:
    done = connection.run(["printf", r"%s\0", *AWKWARD])
    assert done.stdout.decode().split("\0")[:-1] == AWKWARD
    assert connection.run(["test", "-e", "/tmp/ran"]).code == 1


def test_a_programs_name_is_quoted_like_its_arguments(connection: Connection) -> None:
    assert connection.run(["echo $HOME; true"]).code == 127


def test_a_command_gets_its_input_and_says_what_it_says(connection: Connection) -> None:
    done = connection.run(["sh", "-c", "cat; echo oops >&2; exit 3"], data=b"\0\xff" * 300_000)
    assert (done.code, done.stdout, done.said) == (3, b"\0\xff" * 300_000, "oops")


def test_a_command_that_reads_none_of_its_input_ends_as_it_ends(connection: Connection) -> None:
    assert connection.run(["sh", "-c", "exit 4"], data=bytes(20_000_000)).code == 4


def test_a_command_that_a_signal_ends_has_no_exit_code(connection: Connection) -> None:
    assert connection.run(["sh", "-c", "kill -9 $$"]).code == -1


def test_a_command_that_says_nothing_for_too_long_is_given_up(connection: Connection, pair: Lab) -> None:
    with pytest.raises(UnreachableError, match=r"^h0: .*0\.2 s"):
        connection.run(["sleep", "60"], timeout_s=0.2)
    assert pair["h0"].kill("sleep 60") == 1  # giving up does not end it


def test_what_a_login_shell_says_before_is_no_part_of_what_a_command_says(
    connection: Connection, talkative: None
) -> None:
    done = connection.run(["sh", "-c", "printf 'one\\ntwo'"])
    assert (done.code, done.stdout) == (0, b"one\ntwo")


def test_a_login_shell_that_ends_instead_is_quoted(connection: Connection, pair: Lab) -> None:
    with bashrc(pair, "echo This account is not available; exit 1\n"):
        done = connection.run(["true"])
    assert (done.code, done.stdout, done.said) == (1, b"", "This account is not available")


def test_what_a_command_says_is_fit_to_be_shown(connection: Connection) -> None:
    done = connection.run(["sh", "-c", r"printf 'a\033[2Jb\nc\a' >&2"])
    assert done.said == "a?[2Jb c?"


def test_several_commands_share_a_connection(connection: Connection) -> None:
    with connection.open(["cat"]) as one, connection.open(["cat"]) as other:
        one.write(b"one")
        other.write(b"other")
        one.end_input()
        other.end_input()
        assert (other.read(100), one.read(100)) == (b"other", b"one")
        assert (one.read(1), one.wait(), other.wait()) == (b"", 0, 0)


def test_a_file_is_written_as_it_is(connection: Connection, pair: Lab, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * 5000)
    connection.put(tmp_path / "file", "/var/tmp/a file")
    connection.put(b"short", "/var/tmp/$(other)")
    assert pair["h0"].path("/var/tmp/a file").read_bytes() == bytes(range(256)) * 5000
    assert pair["h0"].path("/var/tmp/$(other)").read_bytes() == b"short"


def test_a_file_that_cannot_be_written_is_an_error_that_says_why(connection: Connection) -> None:
    with pytest.raises(TestbedError, match=r"^h0: cannot write /proc/nothing: "):
        connection.put(b"x", "/proc/nothing")


# Root.


@pytest.mark.parametrize("sudo", [True, False])
def test_an_ordinary_user_becomes_root_by_sudo_or_not_but_is_never_asked(lab_works: None, sudo: bool) -> None:
    if shutil.which("sudo") is None:
        pytest.skip("sudo is not installed")
    with (
        Lab(1, user="cutset", sudo=sudo) as lab,
        log_in(lab, load_inventory(lab.inventory).machines[0]) as connection,
    ):
        assert connection.run(["id", "-u"]).stdout == b"1500\n"
        as_root = connection.run(["id", "-u"], root=True)
    assert (as_root.code, as_root.stdout) == ((0, b"0\n") if sudo else (1, b""))


# Broken connections.


def test_a_connection_that_breaks_is_said_to_be_lost(connection: Connection, pair: Lab) -> None:
    with connection.open(["sleep", "60"]) as process:
        pair["h0"].kill_connections()
        with pytest.raises(UnreachableError):
            process.read(1)
    with pytest.raises(UnreachableError, match=r"^h0: "):
        connection.run(["true"])
    assert not connection.alive
    pair["h0"].kill("sleep 60")


def test_a_command_during_which_the_connection_breaks_has_not_ended(
    connection: Connection, pair: Lab
) -> None:
    with pytest.raises(UnreachableError):
        connection.run(["sh", "-c", "kill -9 $PPID; sleep 60"])
    pair["h0"].kill("sleep 60")


@pytest.mark.parametrize("change", [{"user": "no-such-user"}, {"host_key": Key.new().fingerprint}])
def test_a_refused_login_leaves_no_connection(pair: Lab, machine: Machine, change: dict[str, str]) -> None:
    with pytest.raises(MachineError):
        log_in(pair, machine, **change)
    wait_until_nobody_is_logged_in(pair)


def test_a_machine_that_is_silently_cut_off_is_unreachable_until_it_is_back(
    pair: Lab, machine: Machine
) -> None:
    pair["h0"].cut_control()
    try:
        with pytest.raises(UnreachableError, match=r"^h0: cannot be reached"):
            pair.on_controller(lambda: connect(machine, timeout_s=1.0))
    finally:
        pair["h0"].restore_control()
    with log_in(pair, machine) as again:
        assert again.run(["hostname"]).stdout == b"h0\n"


def test_a_machine_without_a_server_is_unreachable(pair: Lab, machine: Machine) -> None:
    with pytest.raises(UnreachableError, match=r"^h0: cannot be reached by SSH at .*:2222"):
        log_in(pair, machine, port=2222)
