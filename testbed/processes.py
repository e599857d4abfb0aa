"""The client of the node launcher: sends it requests and records the state of each node process.

The launcher (`python -m node.tcp.launcher`) forks node processes into their hosts' namespaces. It reads JSON
lines from its standard input and answers with JSON lines on its standard output (the protocol is described
there). This client knows of node processes only what the launcher reports: started, suspends, ready,
progress, failed, exited.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from experiments.child_python import python_command
from experiments.records.observations import ProcessExit
from node.core.wrong_clock import WrongClock
from node.tcp.watching import GO_ON
from testbed.errors import TestbedError
from testbed.json_lines import line_of
from testbed.programs import LAUNCHER
from topologies.first_texts import listed

LINE_BYTES_MAX = 8 << 20
END_TIMEOUT_S = 20.0
NAMED_MAX = 12


HANDED_ON = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "JAVA_HOME"}
)
"""Environment variables that node processes and programs inherit."""
BEGINNINGS_HANDED_ON = ("LC_", "PYTHON", "VIRTUAL_ENV", "CUTSET_")


def handed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that nodes inherit from an environment, without the user's keys and sessions."""
    return {
        name: value
        for name, value in environment.items()
        if name in HANDED_ON or name.startswith(BEGINNINGS_HANDED_ON)
    }


@dataclass(slots=True)
class NodeProcess:
    """The state of one node process.

    `published` and `delivered` are as in `node.core.machine.NodeProgress`. A `silent` process publishes
    nothing more, and all that it published is acknowledged.
    """

    name: str
    host: str
    pid: int | None = None
    ready: bool = False
    progressed: int = 0  # number of progress reports
    published: dict[int, int] = field(default_factory=dict)
    delivered: dict[int, int] = field(default_factory=dict)
    silent: bool = False
    failure: str = ""  # the error that its own code raised, with its location
    exit: ProcessExit | None = None
    end_is_expected: bool = False
    used_before_s: float = 0.0  # processor time before time 0
    processor_s: float | None = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.pid is not None and self.exit is None

    @property
    def how_it_ended(self) -> str:
        """The error that it raised, or its signal or exit code."""
        assert self.exit is not None
        signal, code = self.exit.signal, self.exit.code
        return self.failure or (f"signal {signal}" if signal else f"exit code {code}")


class Processes:
    """All node processes of a run, through one launcher.

    `on_exit` is called with a process that ended. `on_reached` is set while triggers are awaited; it is
    called with a process that is stopped because it has sent a watched message, the index of the watch, and
    the time. `on_suspends` is called with the name of a process that suspends its calls, the launcher's pid,
    and the launcher's descriptor that listens to them, which is closed afterwards.
    """

    def __init__(self, *, on_exit: Callable[[NodeProcess], None]) -> None:
        self.nodes: dict[str, NodeProcess] = {}
        self.history: list[NodeProcess] = []  # includes earlier generations of restarted processes
        self.launcher_ended = asyncio.Event()
        self.on_reached: Callable[[NodeProcess, int, int], None] | None = None
        self.on_suspends: Callable[[str, int, int], None] | None = None
        self._on_exit = on_exit
        self._changed = asyncio.Condition()
        self._launcher: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start_launcher(self, errors: IO[str]) -> None:
        """Start the launcher; standard error of the launcher and the nodes goes to `errors`."""
        self._launcher = await asyncio.create_subprocess_exec(
            *python_command(LAUNCHER),
            env=handed_on(os.environ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=LINE_BYTES_MAX,
        )
        self._reader = asyncio.create_task(self._read())

    @property
    def launcher_pid(self) -> int:
        """The launcher's pid, once it was started."""
        assert self._launcher is not None
        return self._launcher.pid

    def start(self, spec: Mapping[str, Any]) -> NodeProcess:
        """Start a node process, or restart it after its end.

        `spec` is the launcher's NodeSpec; this method adds the number of earlier starts.
        """
        name = spec["name"]
        before = self.starts(name)
        self.nodes[name] = NodeProcess(name, spec["host"])
        self.history.append(self.nodes[name])
        self._tell({"do": "start", "node": {**spec, "start": before}})
        return self.nodes[name]

    def starts(self, name: str) -> int:
        """Return how often a process was started."""
        return sum(node.name == name for node in self.history)

    def go(self, zero_ns: int) -> None:
        """Let all processes begin at this CLOCK_REALTIME instant, time 0 of the run."""
        self._tell({"do": "go", "start_ns": zero_ns, "late_us": 0})

    def go_late(self, name: str, start_ns: int, zero_ns: int) -> None:
        """Let a process begin that was started after time 0. Both times are CLOCK_REALTIME instants."""
        late_us = (start_ns - zero_ns) // 1000
        self._tell({"do": "go", "start_ns": start_ns, "late_us": late_us, "name": name})

    def stop_drivers(self) -> None:
        """Make drivers stop publishing, unless they died with the launcher."""
        self._tell({"do": "stop_drivers"}, strict=False)

    def signal(self, name: str, number: int, *, ends: bool) -> None:
        """Send a signal to one node process and all processes that it started.

        `ends`: the process is expected to end by it. The signal does not go through the launcher, which on a
        busy machine is scheduled later than this process. The pid cannot belong to another process by now,
        because the kernel assigns all other pids first.
        """
        node = self.nodes.get(name)
        if ends and node is not None and node.exit is not None and node.exit.starved:
            return  # the kernel has killed it for lack of memory
        if node is None or node.pid is None or not node.running:
            raise TestbedError(f"{name} is not running")
        node.end_is_expected = node.end_is_expected or ends
        try:
            os.killpg(node.pid, number)
        except ProcessLookupError:
            raise TestbedError(f"{name} is not running") from None

    def resume(self, node: NodeProcess) -> None:
        """Continue a process that stopped after a watched message, if it still runs."""
        if node.pid is not None and node.running:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(node.pid, GO_ON)

    def give_up(self, name: str) -> None:
        """Notify all node processes that this one will not come back. Raises TestbedError if it runs."""
        node = self.nodes.get(name)
        if node is not None and node.running:
            raise TestbedError(f"{name} is running")
        self._tell({"do": "give_up", "process": name})

    def set_clock(self, name: str, clock: WrongClock) -> None:
        """Give a node process this clock, if it runs."""
        self._tell({"do": "clock", "name": name, "clock": asdict(clock)})

    def leave(self, name: str) -> None:
        """Let one node process end by itself, cleanly; its end is then expected."""
        node = self.nodes.get(name)
        if node is None or not node.running:
            raise TestbedError(f"{name} is not running")
        node.end_is_expected = True
        self._tell({"do": "finish", "name": name})

    async def wait_ready(self, names: Collection[str], timeout_s: float) -> None:
        """Wait until all of these are ready. Raises TestbedError if one ends before, or after the timeout."""
        if await self.wait_progress(lambda: all(map(self._ready_or_raise, names)), timeout_s):
            return
        if self.launcher_ended.is_set():
            raise TestbedError("the launcher of the nodes died while they started: see logs/runner.log")
        waiting = [name for name in names if not self.nodes[name].ready]
        raise TestbedError(f"not ready after {timeout_s:.0f} s: {listed(waiting, NAMED_MAX)}")

    async def wait_progress(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `condition` holds and return whether it does; it is checked after each message.

        Returns false after the timeout or when the launcher died.
        """
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(lambda: condition() or self.launcher_ended.is_set())
        except TimeoutError:
            pass
        return condition()

    async def finish(self) -> list[str]:
        """Let all nodes end by themselves, then the launcher; return the problems. Idempotent."""
        for node in self.nodes.values():
            node.end_is_expected = True
        self._tell({"do": "finish"}, strict=False)
        await self.wait_progress(lambda: not any(node.running for node in self.nodes.values()), END_TIMEOUT_S)
        late = [node.name for node in self.nodes.values() if node.running]
        died = self.launcher_ended.is_set()
        await self._end_launcher()
        if died and late:
            return ["the launcher of the nodes died, and all nodes with it: see logs/runner.log"]
        return [f"{name} did not end by itself and was killed" for name in late]

    async def _end_launcher(self) -> None:
        """Close the launcher's input, upon which it kills the remaining processes and exits."""
        if self._launcher is None or self._reader is None:
            return
        assert self._launcher.stdin is not None
        self._launcher.stdin.close()
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await self._reader
        except TimeoutError:
            self._launcher.kill()  # its children die with the sandbox
        await self._launcher.wait()

    def _tell(self, message: Mapping[str, Any], *, strict: bool = True) -> None:
        if self._launcher is None or self.launcher_ended.is_set():
            if strict:
                raise TestbedError(f"the launcher of the nodes is not running: cannot {message['do']}")
            return
        assert self._launcher.stdin is not None
        self._launcher.stdin.write(line_of(message))

    async def _read(self) -> None:
        assert self._launcher is not None
        assert self._launcher.stdout is not None
        while line := await self._launcher.stdout.readline():
            self._heard(json.loads(line))
            async with self._changed:
                self._changed.notify_all()
        self.launcher_ended.set()
        async with self._changed:
            self._changed.notify_all()

    def _heard(self, message: Mapping[str, Any]) -> None:
        node = self.nodes.get(message["name"])
        if node is None:
            return
        match message["did"]:
            case "started":
                node.pid = message["pid"]
            case "suspends":
                assert self.on_suspends is not None, "only what was asked to suspends its calls"
                self.on_suspends(node.name, self.launcher_pid, message["descriptor"])
                self._tell({"do": "took", "descriptor": message["descriptor"]}, strict=False)
            case "ready":
                node.ready = True
            case "progress":
                node.progressed += 1
                node.published.update({int(stream): seq for stream, seq in message["published"].items()})
                node.delivered.update({int(stream): seq for stream, seq in message["delivered"].items()})
                node.silent = message["silent"]
            case "reached" if self.on_reached is not None:
                self.on_reached(node, message["index"], message["time_ns"])
            case "reached":
                self.resume(node)
            case "failed":
                node.failure = message["problem"]
            case "exited":
                end = (message["code"], message["signal"], message["time_ns"])
                node.exit = ProcessExit(*end, expected=node.end_is_expected)
                self._on_exit(node)

    def _ready_or_raise(self, name: str) -> bool:
        node = self.nodes[name]
        if node.exit is not None:
            raise TestbedError(f"{name} ended before it was ready ({node.how_it_ended}): see its log")
        return node.ready
