"""Batches of `ip`, `bridge` or `tc` commands, executed by one process of the tool.

A batch of a thousand lines takes as long as about ten processes with one line each. Pure functions build the
lines (`testbed.network.commands`, `testbed.links.netem_commands`).
"""

import re
import subprocess
from collections.abc import Sequence

from testbed.errors import MachineError, TestbedError

COMMAND_TIMEOUT_S = 120.0


def run_batch(tool: str, lines: Sequence[str], *, doing: str) -> None:
    """Run `tool -batch` (ip, bridge or tc) in the calling thread's namespace.

    doing: the purpose, with which the error message begins. Raises MachineError if the tool is missing and
    TestbedError with the line that failed.
    """
    if not lines:
        return
    text = "\n".join(lines) + "\n"
    try:
        result = subprocess.run(
            [tool, "-batch", "-"],
            input=text,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise MachineError(
            f"{doing}: `{tool}` is not installed (Debian and Ubuntu: package iproute2)"
        ) from None
    except subprocess.TimeoutExpired:
        raise TestbedError(f"{doing}: `{tool} -batch` took more than {COMMAND_TIMEOUT_S} s") from None
    if result.returncode != 0:
        raise TestbedError(
            f"{doing}: {tool} {_failed_line(lines, result.stderr)}: {' '.join(result.stderr.split())}"
        )


def _failed_line(lines: Sequence[str], stderr: str) -> str:
    """Return the line at which a batch stopped: iproute2 prints "Command failed -:3"."""
    found = re.search(r"Command failed -:(\d+)", stderr)
    return lines[int(found[1]) - 1] if found else "-batch"
