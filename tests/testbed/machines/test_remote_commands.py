"""Commands on machines through real SSH servers: arguments, input, output, and exit codes."""

import pytest

from testbed.machines.ssh.ssh import SshConnection, UnreachableError
from tests.testbed.machines.lab import Lab

pytestmark = [pytest.mark.network, pytest.mark.machines, pytest.mark.usefixtures("own_home")]

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


def test_arguments_arrive_unchanged(connection: SshConnection) -> None:
    done = connection.run(["printf", r"%s\0", *AWKWARD])
    assert done.stdout.decode().split("\0")[:-1] == AWKWARD
    assert connection.run(["test", "-e", "/tmp/ran"]).code == 1


def test_a_command_gets_its_input_and_its_output_is_returned(connection: SshConnection) -> None:
    done = connection.run(["sh", "-c", "cat; echo oops >&2; exit 3"], data=b"\0\xff" * 300_000)
    assert (done.code, done.stdout, done.error_output) == (3, b"\0\xff" * 300_000, "oops")


def test_a_command_that_reads_no_input_has_its_own_exit_code(connection: SshConnection) -> None:
    assert connection.run(["sh", "-c", "exit 4"], data=bytes(20_000_000)).code == 4


def test_a_command_that_a_signal_ends_has_no_exit_code(connection: SshConnection) -> None:
    assert connection.run(["sh", "-c", "kill -9 $$"]).code == -1


def test_a_silent_command_times_out_but_is_not_ended(connection: SshConnection, pair: Lab) -> None:
    with pytest.raises(UnreachableError, match=r"^h0: .*0\.2 s"):
        connection.run(["sleep", "60"], timeout_s=0.2)
    assert pair["h0"].kill("sleep 60") == 1


def test_a_login_shells_output_is_no_part_of_a_commands_output(connection: SshConnection, pair: Lab) -> None:
    pair["h0"].run(["sh", "-c", "cat >/root/.bashrc"], input="echo hello; printf 'no end of line'\n")
    try:
        done = connection.run(["sh", "-c", "printf 'one\\ntwo'"])
    finally:
        pair["h0"].run(["rm", "/root/.bashrc"])
    assert (done.code, done.stdout) == (0, b"one\ntwo")
