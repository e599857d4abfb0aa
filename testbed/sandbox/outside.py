"""The CLI's side of a sandbox, which starts it, communicates with it, and ensures that it ends.

A `Sandbox` is a context manager around one command that runs as a child of the sandbox's PID 1, in separate
network, mount and PID namespaces (for an ordinary user also a user namespace). It runs in its own session, so
that Ctrl-C on the terminal reaches only the CLI, which then decides. Leaving the context kills all processes
that still run.
"""

import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from experiments.child_python import absolute_entries
from testbed.errors import MachineError
from testbed.sandbox.channel import SandboxChannel
from testbed.sandbox.commands import init_command, sandbox_command
from testbed.sandbox.control_groups import Keeper
from testbed.sandbox.requirements import (
    SANDBOX_TOOLS,
    check_tools,
    failed_to_start,
    search_path,
    user_namespace_needed,
)

PROJECT = Path(__file__).resolve().parents[2]
ENTER_TIMEOUT_S = 60.0
DIE_TIMEOUT_S = 20.0
RUN_VARIABLE = "CUTSET_RUN"
"""Environment variable of every process of a run, with the run's token, which identifies the processes."""


class Sandbox:
    """A new sandbox that runs `command`. `channel` is this side's end of the control channel.

    `stdin` and `stdout` are as for subprocess (stdin is empty by default); `errors` is the file for the
    standard error of all processes inside, a temporary one by default. control_groups: whether processes
    inside have control groups, which are removed afterwards.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        token: str = "",
        environment: Mapping[str, str] | None = None,
        stdin: int | IO[str] = subprocess.DEVNULL,
        stdout: int | IO[str] | None = None,
        errors: IO[str] | None = None,
        control_groups: bool = False,
    ) -> None:
        self._command, self._token = list(command), token
        self._environment = {**os.environ, **(environment or {}), RUN_VARIABLE: token}
        self._environment["PATH"] = search_path(self._environment)
        self._environment["PYTHONPATH"] = os.pathsep.join(
            [str(PROJECT), *filter(None, [absolute_entries(self._environment.get("PYTHONPATH", ""))])]
        )
        self._stdin = stdin
        self._stdout = stdout
        self._errors = errors
        self._control_groups = control_groups
        self._resources = contextlib.ExitStack()
        self.channel: SandboxChannel
        self.process: subprocess.Popen[str]

    def __enter__(self) -> "Sandbox":
        """Start the sandbox. Raises MachineError, with the remedy, if sandboxes cannot be created."""
        check_tools(SANDBOX_TOOLS)
        # The kernel sends the parent-death signal when the starting *thread* dies (prctl(2)).
        assert threading.current_thread() is threading.main_thread()
        with contextlib.ExitStack() as stack:
            errors = self._errors or stack.enter_context(tempfile.TemporaryFile("w+"))
            offset = errors.tell()
            if self._control_groups and (problem := stack.enter_context(Keeper(self._token)).problem):
                raise MachineError(f"no control groups: {problem}")
            self._start(stack, errors)
            if self.channel.receive(ENTER_TIMEOUT_S) != {"did": "entered"}:
                self.kill()
                errors.seek(offset)
                raise failed_to_start(errors.read())
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the command's end; returns its exit code. Raises TimeoutError."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the sandbox still runs after {timeout_s} s") from None

    def kill(self) -> None:
        """Kill all processes inside and wait for their end; idempotent.

        Closing the lifeline makes PID 1 exit, and unshare returns only when all processes of its namespaces
        have ended. If PID 1 does not react, unshare is killed, which kills PID 1.
        """
        self._lifeline.close()
        try:
            self.process.wait(DIE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _start(self, stack: contextlib.ExitStack, errors: IO[str]) -> None:
        ours, theirs = SandboxChannel.pair()
        self.channel = SandboxChannel(ours)
        stack.callback(self.channel.close)
        reading, writing = os.pipe()
        self._lifeline = stack.enter_context(os.fdopen(writing, "wb"))
        with theirs, os.fdopen(reading, "rb"):
            inside = init_command(self._command, lifeline=reading, control=theirs.fileno())
            self.process = subprocess.Popen(
                sandbox_command(inside, user_namespace=user_namespace_needed()),
                env=self._environment,
                stdin=self._stdin,
                stdout=self._stdout,
                stderr=errors,
                pass_fds=(reading, theirs.fileno()),
                start_new_session=True,
                text=True,
            )
        stack.callback(self.kill)


def run_in_sandbox(
    command: Sequence[str],
    *,
    text: str = "",
    timeout_s: float = 60.0,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one command in a sandbox, with `text` as its standard input, and return its result.

    Raises MachineError if sandboxes cannot be created, TimeoutError if it takes longer than `timeout_s`.
    """
    with (
        tempfile.TemporaryFile("w+") as stdin,
        tempfile.TemporaryFile("w+") as stdout,
        tempfile.TemporaryFile("w+") as errors,
    ):
        stdin.write(text)
        stdin.seek(0)
        with Sandbox(command, environment=environment, stdin=stdin, stdout=stdout, errors=errors) as sandbox:
            code = sandbox.wait(timeout_s)
        stdout.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(list(command), code, stdout.read(), errors.read())
