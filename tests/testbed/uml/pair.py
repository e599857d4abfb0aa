"""Two user-mode-linux guests joined by a pair of sockets, which both kernels use as a network card.

`python -m tests.testbed.uml.pair COMMANDS`, a JSON list of one command for each; runs in a sandbox.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence

from testbed.sandbox import run_in_sandbox
from tests.testbed.uml.uml_machine import Booted, kernel_line, result_of

MARK = "---- guest ----"


def boot_pair(commands: Sequence[Sequence[str]], *, timeout_s: float) -> list[Booted]:
    """Run a command in each of two fresh machines at once. Raises TimeoutError."""
    line = [sys.executable, "-m", __spec__.name, json.dumps([list(command) for command in commands])]
    said = run_in_sandbox(line, timeout_s=timeout_s).stdout
    return [result_of(console) for console in said.split(MARK)[1:]]


def main(commands_json: str) -> None:
    """Boot both guests, wait for both, and print their consoles."""
    guests = []
    for command, end in zip(
        json.loads(commands_json), socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM), strict=True
    ):
        card = f"vec0:transport=fd,fd={end.fileno()}"
        line = kernel_line(command, memory="192M", more=(card,))
        guests.append(
            subprocess.Popen(
                line, pass_fds=[end.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
            )
        )
    for guest in guests:
        sys.stdout.write(f"{MARK}\n{guest.communicate()[0]}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
