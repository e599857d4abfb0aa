"""Captures with tcpdump: one process for each capture point, from before the nodes start until after they
end.

Stamps have nanoseconds. Files are classic pcap and grow in the run directory from the first packet, so that
a crash keeps them. A capture is ready when tcpdump says that it listens; it is ended with SIGINT, upon
which tcpdump says how many packets it wrote and how many the kernel dropped. A capture that ends by itself
is a problem of the run, never its end. Indexing the files is the analysis' work.

A capture that is watched while the run goes on is written in parts (`experiments.records.capture_parts`):
tcpdump begins a new one with the first packet that comes ROTATION_S after the last one was begun, in
between two packets, so nothing is lost; an interface without packets keeps its last part open, and when
there were none since, that part lacks what tcpdump has not written yet.
"""

import asyncio
import contextlib
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.planned.plan import CapturePlan
from experiments.records.capture_parts import folder_of, held
from testbed.assignment import WIRE_SNAPLEN_BYTES
from testbed.capturing.capture_commands import CapturePoint, buffer_kib, memory_bytes, tcpdump_command
from testbed.errors import TestbedError

FLUSH_S = 1.1
"""The kernel hands packets over in blocks at least every second (tcpdump's timeout): so long after the last
packet that matters, tcpdump has them all, unless the machine is too busy to let it run.
"""
READY_TIMEOUT_S = 20.0
END_TIMEOUT_S = 20.0
ASK_PERIOD_S = 0.05

LISTENING = b"listening on"
COUNTS = re.compile(r"(\d+) packets? (captured|received by filter|dropped by kernel)")


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What a capture holds; counts are None when tcpdump could not say (it was killed)."""

    capture: CapturePlan
    packets: int | None
    kernel_drops: int | None


@dataclass(slots=True)
class _Running:
    point: CapturePoint
    process: asyncio.subprocess.Process
    said: bytearray = field(default_factory=bytearray)
    ending: bool = False
    watcher: "asyncio.Task[None] | None" = None


def parse_counts(said: str) -> tuple[int | None, int | None]:
    """Packets captured and packets dropped by the kernel, from what tcpdump says as it ends."""
    counts = {what: int(number) for number, what in COUNTS.findall(said)}
    return counts.get("captured"), counts.get("dropped by kernel")


def has_all(said: str) -> bool:
    """Whether tcpdump has written all that had arrived when it first said its counts."""
    counts = [(what, int(number)) for number, what in COUNTS.findall(said)]
    of = {kind: [number for what, number in counts if what == kind] for kind, _ in counts}
    if not of.get("dropped by kernel"):  # they are said in one go, this one last
        return False
    return of["captured"][-1] + of["dropped by kernel"][-1] >= of["received by filter"][0]


class Captures:
    """All captures of a run. `on_problem` is called when one ends by itself."""

    def __init__(self, directory: Path, *, root: bool, on_problem: Callable[[str], None]) -> None:
        self._directory = directory
        self._root = root
        self._on_problem = on_problem
        self._running: list[_Running] = []
        self._held = contextlib.ExitStack()

    async def start(self, points: Sequence[CapturePoint], *, snaplen_bytes: int | None) -> None:
        """Start one tcpdump for each point and wait until all listen. Raises TestbedError if one does not."""
        if any(point.capture.in_parts for point in points):
            self._held.enter_context(held(self._directory))
        buffer = buffer_kib(len(points), memory_bytes())
        for point in points:
            path = self._directory / point.capture.file
            if point.capture.in_parts:
                folder_of(path).mkdir()
            size = WIRE_SNAPLEN_BYTES if point.capture.wire else snaplen_bytes
            command = tcpdump_command(point, path, snaplen_bytes=size, root=self._root, buffer_kib=buffer)
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
            self._running.append(_Running(point, process))
        await asyncio.gather(*(self._await_listening(running) for running in self._running))
        for running in self._running:
            running.watcher = asyncio.create_task(self._watch(running))

    async def stop(self) -> list[CaptureResult]:
        """End all captures once they hold what has arrived, soonest FLUSH_S after the last packet that
        matters; idempotent.
        """
        await asyncio.gather(*(_until_it_has_all(running) for running in self._running))
        for running in self._running:
            running.ending = True
            _send(running, signal.SIGINT)
        results = await asyncio.gather(*(self._end(running) for running in self._running))
        self._running = []
        self._held.close()
        return results

    async def _await_listening(self, running: _Running) -> None:
        assert running.process.stderr is not None
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                while LISTENING not in running.said:
                    line = await running.process.stderr.readline()
                    running.said += line
                    if not line:
                        raise TestbedError(
                            f"the capture {_name(running)} did not start: {_last_words(running)}"
                        )
        except TimeoutError:
            raise TestbedError(f"the capture {_name(running)} did not start in {READY_TIMEOUT_S} s") from None

    async def _watch(self, running: _Running) -> None:
        assert running.process.stderr is not None
        while data := await running.process.stderr.read(4096):
            running.said += data
        code = await running.process.wait()
        if not running.ending:
            self._on_problem(f"the capture {_name(running)} ended by itself ({code}): {_last_words(running)}")

    async def _end(self, running: _Running) -> CaptureResult:
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                if running.watcher is not None:
                    await running.watcher
        except TimeoutError:
            _send(running, signal.SIGKILL)
            self._on_problem(f"the capture {_name(running)} had to be killed")
        await running.process.wait()
        packets, drops = parse_counts(running.said.decode(errors="replace"))
        return CaptureResult(running.point.capture, packets, drops)


async def _until_it_has_all(running: _Running) -> None:
    """tcpdump that is told to end throws away what it has not read yet, so it is asked for its counts before
    (SIGUSR1): on a busy machine it may be behind.
    """
    if running.watcher is None:  # not even all captures listen: nothing matters yet
        return
    with contextlib.suppress(TimeoutError):  # its counts will tell
        async with asyncio.timeout(END_TIMEOUT_S):
            while not running.watcher.done() and not has_all(running.said.decode(errors="replace")):
                _send(running, signal.SIGUSR1)
                await asyncio.sleep(ASK_PERIOD_S)


def _send(running: _Running, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended by itself, and its watcher has said so
        running.process.send_signal(number)


def _name(running: _Running) -> str:
    return running.point.capture.file


def _last_words(running: _Running) -> str:
    """What it said, in one line, but for the announcement that it listens."""
    lines = running.said.decode(errors="replace").splitlines()
    return " ".join(line for line in lines if LISTENING.decode() not in line) or "it said nothing"
