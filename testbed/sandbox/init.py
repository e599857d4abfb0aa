"""PID 1 of a sandbox: starts one command, reaps orphans, forwards TERM and INT, and exits with the lifeline.

Run as `python -m testbed.sandbox.init LIFELINE CONTROL COMMAND…`. LIFELINE is the read end of a pipe whose
write end only the CLI holds: when it is closed, PID 1 exits and the kernel kills all processes of the
sandbox. CONTROL is the command's end of the control channel; PID 1 sends a single message on it when the
sandbox is ready. A PID 1 without handlers would ignore TERM and INT (pid_namespaces(7)); this one forwards
both to the command as TERM.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

from testbed.sandbox.channel import FD_VARIABLE
from testbed.sandbox.commands import inside_commands

ENTERED = b'{"did":"entered"}'
LIFELINE_ENDED = 128 + signal.SIGKILL
COULD_NOT_START = 126


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit code, or 128 + the signal number, as shells do."""
    lifeline, control, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    os.set_inheritable(lifeline, False)
    wakeup = _listen_for_signals()
    problem = _prepare()
    if problem is not None:
        sys.stderr.write(problem)
        return COULD_NOT_START
    os.write(control, ENTERED)
    try:
        child = _spawn(command, control)
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        return COULD_NOT_START
    os.close(control)
    return _watch(child, lifeline, wakeup)


def _prepare() -> str | None:
    for command in inside_commands():
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if result.returncode != 0:
            return f"{' '.join(command)}: {result.stderr}"
    return None


def _listen_for_signals() -> int:
    """Turn every relevant signal into a byte in a pipe; returns the pipe's read end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return reading


def _spawn(command: Sequence[str], control: int) -> int:
    os.set_inheritable(control, True)
    environment = {**os.environ, FD_VARIABLE: str(control)}
    # Python ignores these two signals; a child would inherit that.
    defaults = [signal.SIGPIPE, signal.SIGXFSZ]
    return os.posix_spawnp(command[0], list(command), environment, setsigdef=defaults)


def _watch(child: int, lifeline: int, wakeup: int) -> int:
    poller = select.poll()
    poller.register(lifeline, select.POLLIN | select.POLLHUP)
    poller.register(wakeup, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poller.poll()]
        if lifeline in ready:
            return LIFELINE_ENDED
        arrived = os.read(wakeup, 4096)
        if any(number in arrived for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)):
            os.kill(child, signal.SIGTERM)
        code = _reap(child)
        if code is not None:
            return code


def _reap(child: int) -> int | None:
    """Reap ended processes; returns the command's exit code if it is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
