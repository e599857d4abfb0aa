"""A sandbox that stays and forks a nested one for each call: Python starts and imports once per session.

A call has its own network, mount and PID namespaces; when its PID 1 ends, all its processes end.

Inside, `python -m tests.testbed.warm_sandbox` reads a JSON line for each call on standard input,

    {"function": "MODULE:NAME", "arguments": […], "folder": FOLDER}

writes the function's result to FOLDER/result and its output to FOLDER/said, and answers with its exit code.
"""

import ctypes
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from experiments.child_python import python_command
from testbed.sandbox import Sandbox
from testbed.sandbox.commands import inside_commands

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000  # sched.h
MOUNT_PROC = ["mount", "-n", "-t", "proc", "proc", "/proc"]
RESULT, SAID = "result", "said"
END_S_MAX = 2.0


class WarmSandbox:
    """The outside of the sandbox. It starts with the first call, and again after a call that did not end in
    time.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._sandbox: Sandbox | None = None

    def call(self, name: str, arguments: tuple[Any, ...], timeout_s: float) -> tuple[int, str, str]:
        """Call MODULE:NAME inside; return exit code, result (JSON) and output. Raises TimeoutError."""
        with tempfile.TemporaryDirectory(prefix="cutset-sandboxed-") as folder:
            asked = {"function": name, "arguments": arguments, "folder": folder}
            code = self._ask(json.dumps(asked), timeout_s)
            result, said = (
                path.read_text() if (path := Path(folder, file)).exists() else "" for file in (RESULT, SAID)
            )
        return code, result, said

    def _ask(self, line: str, timeout_s: float) -> int:
        if self._sandbox is None:
            self._sandbox = self._stack.enter_context(
                Sandbox(python_command(__spec__.name), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
        stdin, stdout = self._sandbox.process.stdin, self._sandbox.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{line}\n")
        stdin.flush()
        if not select.select([stdout], [], [], timeout_s)[0]:
            self.close()
            raise TimeoutError(f"the call did not end within {timeout_s} s")
        answer = stdout.readline()
        if not answer:
            self.close()
            raise AssertionError(f"the sandbox ended during {line}")
        return int(answer)

    def close(self) -> None:
        """End it and all its processes; idempotent. It waits, so that their processor time counts for this
        process.
        """
        sandbox, self._sandbox = self._sandbox, None
        with self._stack:
            if sandbox is not None and sandbox.process.stdin is not None:
                sandbox.process.stdin.close()
                with suppress(TimeoutError):
                    sandbox.wait(END_S_MAX)


def serve() -> None:
    """Serve calls inside: each in a fork of this process, which has imported its module."""
    for line in sys.stdin:
        asked = json.loads(line)
        importlib.import_module(asked["function"].partition(":")[0])
        code = _in_child(partial(_in_fresh_namespaces, **asked))
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _in_fresh_namespaces(function: str, arguments: list[Any], folder: str) -> int:
    """Call the work below a PID 1 that waits for nothing else."""
    said = os.open(Path(folder, SAID), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, source in ((0, nothing), (1, said), (2, said)):
        os.dup2(source, descriptor)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID) != 0:
        raise OSError(ctypes.get_errno(), "unshare")

    def call() -> int:
        module, _, name = function.partition(":")
        result = getattr(sys.modules[module], name)(*arguments)
        Path(folder, RESULT).write_text(json.dumps(result))
        return 0

    def first() -> int:
        for command in (MOUNT_PROC, *inside_commands()):
            subprocess.run(command, check=True)
        return _in_child(call)

    return _in_child(first)


def _in_child(work: Callable[[], int]) -> int:
    """Run `work` in a fork and return its exit code; reap other children meanwhile."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = work()
        except BaseException:  # noqa: BLE001 (said, and then this process is over)
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    while True:
        ended, status = os.wait()
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    serve()
