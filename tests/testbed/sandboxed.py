"""Runs a test's own function in a sandbox, as the current user or as an ordinary user.

The function must be defined at the top of a module; its arguments and its result are JSON. Its output goes to
standard error and is shown if it fails.
"""

import atexit
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from testbed.sandbox import run_in_sandbox
from tests.testbed.as_ordinary_user import ordinary
from tests.testbed.warm_sandbox import WarmSandbox

CHECKOUT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 300.0


def sandboxed(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call `function(*arguments)` in a separate sandbox and return its result. Raises AssertionError if it
    raises.
    """
    return _result(*_warm().call(_name(function), arguments, TIMEOUT_S))


@cache
def _warm() -> WarmSandbox:
    """Return this process's warm sandbox, which ends with it."""
    warm = WarmSandbox()
    atexit.register(warm.close)
    return warm


def sandboxed_as_ordinary_user(function: Callable[..., Any], *arguments: Any, home: Path) -> Any:
    """Run the function as an ordinary user with this home."""
    return finish(_popen(ordinary(_command("outside", function, arguments), home)))


def start(function: Callable[..., Any], *arguments: Any) -> subprocess.Popen[str]:
    """Begin such a call; `finish` gets its result."""
    return _popen(_command("outside", function, arguments))


def finish(process: subprocess.Popen[str]) -> Any:
    """Return the result of a started call."""
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    return _result(process.returncode, stdout, stderr)


def _result(code: int, stdout: str, stderr: str) -> Any:
    assert code == 0, f"in the sandbox:\n{stderr}"
    return json.loads(stdout)


def _command(side: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[str]:
    return [sys.executable, "-m", "tests.testbed.sandboxed", side, _name(function), json.dumps(arguments)]


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _popen(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def main(side: str, name: str, arguments: str) -> int:
    """Make the sandbox (outside), or call the function, with standard output kept for its result (inside)."""
    if side == "outside":
        inner = [sys.executable, "-m", "tests.testbed.sandboxed", "inside", name, arguments]
        done = run_in_sandbox(inner, timeout_s=TIMEOUT_S)
        sys.stderr.write(done.stderr)
        sys.stdout.write(done.stdout)
        return done.returncode
    result = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, _, function = name.partition(":")
    value = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    with result:
        json.dump(value, result)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
