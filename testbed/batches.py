"""Runs lines of `ip`, `bridge` or `tc` in one process: where the network's commands are executed.

One batch of a thousand lines takes as long as some ten processes of a line each. The lines come from pure
functions (`testbed.network.commands`, `testbed.links.netem_commands`).
"""

import re
import subprocess
from collections.abc import Sequence

from testbed.errors import MachineError, TestbedError

COMMAND_TIMEOUT_S = 120.0


def run_batch(tool: str, lines: Sequence[str], *, doing: str) -> None:
    """Run `tool -batch` (ip, bridge or tc) in the calling thread's namespace.

    doing: what it is for, as the error says it. Raises MachineError if the tool is missing, TestbedError with
    the line that failed.
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
    """The line that a batch stopped at: iproute2 says "Command failed -:3"."""
    found = re.search(r"Command failed -:(\d+)", stderr)
    return lines[int(found[1]) - 1] if found else "-batch"
