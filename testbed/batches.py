"""Tools of the network: batches of `ip`, `bridge` or `tc` commands by one process, and single commands.

A batch of a thousand lines takes as long as about ten processes with one line each. Pure functions build the
lines (`testbed.network.commands`, `testbed.links.netem_commands`).
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence

from testbed.errors import MachineError, TestbedError

COMMAND_TIMEOUT_S = 120.0
TOOL_TIMEOUT_S = 10.0


def run_tool(tool: str, *arguments: str, package: str, text: str = "") -> str:
    """Run a tool in the calling thread's network namespace, with `text` as its input; returns its output.

    package: the Debian package that has it. Raises MachineError if it is missing, TestbedError if it fails.
    """
    done = _run([tool, *arguments], text, package=package, timeout_s=TOOL_TIMEOUT_S)
    if done.returncode != 0:
        raise TestbedError(f"{tool}: {' '.join(done.stderr.split())}")
    return done.stdout


def run_batch(tool: str, lines: Sequence[str], *, doing: str, env: Mapping[str, str] | None = None) -> None:
    """Run `tool -batch` (ip, bridge or tc) in the calling thread's namespace.

    doing: the purpose, with which the error message begins. env: additional environment variables. Raises
    MachineError if the tool is missing and TestbedError with the line that failed.
    """
    if not lines:
        return
    text = "\n".join(lines) + "\n"
    try:
        result = _run([tool, "-batch", "-"], text, package="iproute2", timeout_s=COMMAND_TIMEOUT_S, env=env)
    except TestbedError as error:
        raise type(error)(f"{doing}: {error}") from None
    if result.returncode != 0:
        raise TestbedError(
            f"{doing}: {tool} {_failed_line(lines, result.stderr)}: {' '.join(result.stderr.split())}"
        )


def _run(
    command: Sequence[str], text: str, *, package: str, timeout_s: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with this input. Raises MachineError if it is missing, TestbedError after the timeout."""
    try:
        return subprocess.run(
            command,
            env=None if env is None else {**os.environ, **env},
            input=text,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError:
        raise MachineError(
            f"`{command[0]}` is not installed (Debian and Ubuntu: package {package})"
        ) from None
    except subprocess.TimeoutExpired:
        raise TestbedError(f"`{command[0]}` took more than {timeout_s} s") from None


def _failed_line(lines: Sequence[str], stderr: str) -> str:
    """Return the line at which a batch stopped: iproute2 prints "Command failed -:3"."""
    found = re.search(r"Command failed -:(\d+)", stderr)
    return lines[int(found[1]) - 1] if found else "-batch"
