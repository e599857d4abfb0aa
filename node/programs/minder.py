"""Minder: the process that starts a program in the host's namespaces, supervises it, and ends with it.

It replaces a node process with a machine: the launcher forks it and receives from it readiness, the progress
of its client, and its end. It leads a process group that contains the program and its children, so that
killing, stopping or continuing a node affects all of them at once. The program dies with the minder
(prctl(2), PR_SET_PDEATHSIG), and the minder with the launcher.

Processes that the program leaves behind are adopted by the minder (PR_SET_CHILD_SUBREAPER) and killed. A
program that ends without a request has failed, whatever its exit code.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from node.core.machine import Log, NodeProgress
from node.core.specification import NodeSpec
from node.core.wrong_clock import WrongClock
from node.programs.client_channel import ClientChannel
from node.programs.environment import environment, image_environment, image_view, prepare
from node.programs.faked_clock import PERIOD_S, FakedClock, executable_problem
from node.programs.host_view import enter_view
from node.programs.image_view import ImageView, enter_running
from node.programs.launch import Launch
from node.programs.output import ProgramOutput
from node.programs.readiness import NotReadyError, ReadyWatch
from node.programs.starting import child_setup, child_setup_in_image, start_program
from node.tcp.child import enter_host, log_line, open_append, send_to_launcher
from node.tcp.libc import libc
from node.tcp.process import MESSAGE_BYTES_MAX, progress_reports

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
READ_BYTES = 1 << 16
FAILED = 70  # EX_SOFTWARE of sysexits.h
CLIENT_ENDS_S = 2.0
"""Time for a client to end by itself after finish, before its stop signal is sent."""


def run_program(given: dict[str, Any], control: socket.socket) -> int:
    """Run one program until it has ended; return the exit code."""
    spec = NodeSpec.from_json(given)
    assert spec.program is not None
    enter_host(spec)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    launch = Launch.from_json(spec.program)
    number = signal.Signals[f"SIG{launch.program.stop.signal}"]
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_IGN)  # sent to the whole group, for the program
    with open_append(spec.log) as log, asyncio.Runner() as runner:
        return runner.run(Minder(spec, launch, control, log).run())


class Minder:
    """One program under supervision."""

    def __init__(self, spec: NodeSpec, launch: Launch, control: socket.socket, log: Any) -> None:
        self._spec, self._launch, self._control, self._file = spec, launch, control, log
        self._program = launch.program
        self._problem = ""
        self._is_finishing = self._is_ready = False
        self._ended = asyncio.Event()
        self._given_up = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._clock: FakedClock | None = None
        self._following: asyncio.Task[None] | None = None
        self._process: subprocess.Popen[bytes]
        self._view: ImageView | None

    async def run(self) -> int:
        """Run until the program has ended; return the exit code."""
        loop = asyncio.get_running_loop()
        channel = ClientChannel(self._client_reported)
        try:
            env = self._start(channel.name)
        except (OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            self._fail(f"cannot start {self._program.run[0]}: {error}")
            return FAILED
        self._watch = ReadyWatch(
            self._program.ready,
            self._spec.address,
            env,
            str(self._launch.folder),
            lambda command: self._setup_beside(command, env),
        )
        self._output = ProgramOutput(self.log, self._watch.saw_line)
        self._control.setblocking(False)
        loop.add_reader(self._control, self._read_control, channel)
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        loop.add_reader(self._process.stdout, self._read_output)
        ending = os.pidfd_open(self._process.pid)
        loop.add_reader(ending, self._ended.set)
        self._start_task(self._report_when_ready())
        await self._end()
        loop.remove_reader(ending)
        os.close(ending)
        code = self._process.wait()
        self._read_output()
        self._output.end()
        channel.close()
        loop.remove_reader(self._control)
        for task in tuple(self._tasks):
            task.cancel()
        kill_children()
        return self._result(code)

    def log(self, line: Log) -> None:
        """Write a line of the host's log."""
        self._file.write(log_line(line))

    def _start(self, channel: str) -> dict[str, str]:
        """Start the program, in its view of the machine; return its environment."""
        hosts, storage = prepare(self._spec, self._launch)
        env = environment(self._spec, self._launch, channel)
        if self._spec.clock is not None:
            self._clock = FakedClock(self._launch.folder)
            env |= self._clock.prepare(self._program.run, env.get("PATH", os.defpath))
            self._set_clock(self._spec.clock)
        paths = [Path(each) for each in (sys.prefix, *self._launch.python_path.split(os.pathsep))]
        folders = (self._launch.folder.parent.parent, self._launch.system, *paths, self._launch.image_root)
        kept = [each for each in folders if each and each.is_dir()]
        enter_view(self._spec.host, hosts, storage, kept)
        self._view = image_view(self._spec, self._launch, hosts, storage)
        run, folder = self._program.run, self._launch.folder
        if self._view is None:
            setup = child_setup(self._program)
        else:
            env_inside = image_environment(env, self._launch)
            setup = child_setup_in_image(self._program, run, env_inside, self._view, self._view.enter)
        self._process = start_program(
            run,
            setup,
            self._spec.control_groups,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=folder,
        )
        self.log(Log("started", {"run": list(self._program.run), "pid": self._process.pid}))
        return env

    def _setup_beside(self, command: Sequence[str], env: Mapping[str, str]) -> Callable[[], None] | None:
        """Return how a command enters the program's image; None for one of the machine."""
        if self._view is None or command[0] == sys.executable:
            return None
        enter = partial(enter_running, self._process.pid)
        env_inside = image_environment(env, self._launch)
        return child_setup_in_image(self._program, command, env_inside, self._view, enter)

    async def _report_when_ready(self) -> None:
        try:
            await self._watch.wait()
        except NotReadyError as error:
            if self._spec.start:  # others may be unreachable now, so the run decides whether to continue
                self.log(Log("not_ready", {"problem": str(error)}, "warning"))
                return
            self._problem = str(error)
            self._given_up.set()
            return
        if self._clock is not None and (problem := _first_problem(self._process.pid)) is not None:
            self._problem = f"its clock cannot be made wrong: {problem}"
            self._given_up.set()
            return
        self._is_ready = True
        self.log(Log("ready", {}))
        self._send({"did": "ready"})

    async def _end(self) -> None:
        """Wait for the program's end; stop the program on a finish request or if it does not become ready."""
        ended = asyncio.ensure_future(self._ended.wait())
        stop_requested = asyncio.ensure_future(self._given_up.wait())
        await asyncio.wait((ended, stop_requested), return_when=asyncio.FIRST_COMPLETED)
        stop_requested.cancel()
        if not self._ended.is_set() and self._program.is_client and not self._problem:
            await asyncio.wait((ended,), timeout=CLIENT_ENDS_S)
        if not self._ended.is_set():
            self._send_stop_signal()
            await asyncio.wait((ended,), timeout=self._program.stop.grace_us / 1e6)
        if not self._ended.is_set():
            self.log(Log("killed", {"after_us": self._program.stop.grace_us}, "warning"))
            self._process.kill()
            await ended

    def _send_stop_signal(self) -> None:
        """Signal the whole group; this process ignores the signal."""
        number = signal.Signals[f"SIG{self._program.stop.signal}"]
        if number == signal.SIGKILL:
            self._process.kill()
            return
        os.killpg(os.getpgrp(), number)

    def _result(self, code: int) -> int:
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        self.log(Log("ended", {"how": how, "was_asked": self._is_finishing}))
        last_words = f"; its last words: {self._output.last}" if self._output.last else ""
        if self._problem:
            self._fail(self._problem + last_words)
            return FAILED
        if self._is_finishing:
            return 0
        if code == 0 and not self._is_ready and self._program.ready.is_awaited:
            how += " before it was ready (if it went into the background, keep it in the foreground)"
        self._fail(f"{self._program.run[0]} ended by itself, with {how}{last_words}")
        return code if code > 0 else FAILED

    def _fail(self, problem: str) -> None:
        self.log(Log("failed", {"problem": problem}, "error"))
        self._send({"did": "failed", "problem": problem})

    def _read_control(self, channel: ClientChannel) -> None:
        try:
            data = self._control.recv(MESSAGE_BYTES_MAX)
        except BlockingIOError:
            return
        if not data:
            os.killpg(os.getpgrp(), signal.SIGKILL)  # the launcher has ended: nothing waits for this process
        message = json.loads(data)
        if message["do"] in {"go", "stop_drivers", "finish"}:
            channel.send(message)
        if message["do"] == "clock":
            self._set_clock(WrongClock(**message["clock"]))
        if message["do"] == "finish":
            self._is_finishing = True
            self._given_up.set()

    def _client_reported(self, message: Mapping[str, Any]) -> None:
        match message["did"]:
            case "ready":
                self._watch.was_told()
            case "log":
                self.log(Log(str(message["event"]), dict(message["fields"]), "warning"))
            case "progress":
                counts = [
                    {int(stream): int(seq) for stream, seq in message[what].items()}
                    for what in ("published", "delivered")
                ]
                progress = NodeProgress(counts[0], counts[1], silent=bool(message["silent"]))
                for report in progress_reports(progress):
                    self._send(report)

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._process.stdout.fileno(), READ_BYTES):
                self._output.feed(data)
            asyncio.get_running_loop().remove_reader(self._process.stdout)

    def _set_clock(self, clock: WrongClock) -> None:
        """Make the program's clock this one from now on."""
        if self._following is not None:
            self._following.cancel()
            self._following = None
        if self._clock is not None and self._clock.follow(clock, time.time_ns() // 1000):
            self._following = self._start_task(self._follow(self._clock, clock))

    async def _follow(self, faked: FakedClock, clock: WrongClock) -> None:
        while faked.follow(clock, time.time_ns() // 1000):
            await asyncio.sleep(PERIOD_S)

    def _start_task(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _send(self, message: Mapping[str, Any]) -> None:
        send_to_launcher(self._control, self._spec.name, message)


def _first_problem(pid: int) -> str | None:
    """Return why the clock of a process or a descendant cannot be made wrong, or None: a script may have
    started any program.
    """
    with contextlib.suppress(OSError):  # it has just ended
        if (problem := executable_problem(Path(f"/proc/{pid}/exe").readlink())) is not None:
            return problem
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                if (problem := _first_problem(int(child))) is not None:
                    return problem
    return None


def kill_children() -> None:
    """Kill the children of this process until none is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for child in Path("/proc/self/task").glob("*/children"):
                for number in child.read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(number), signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)
