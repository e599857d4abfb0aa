"""Captures with tcpdump: one process for each capture point, from before the nodes start until after they
end.

Timestamps have nanoseconds. Files are classic pcap and grow in the run directory from the first packet, so a
crash does not lose them. A capture is ready when tcpdump reports that it listens. It is ended with SIGINT;
tcpdump then reports how many packets it wrote and how many the kernel dropped. A capture that ends by itself
is a problem of the run but does not end it. The analysis indexes the files.
"""

import asyncio
import contextlib
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.planned.plan import CapturePlan
from testbed.assignment import WIRE_SNAPLEN_BYTES
from testbed.capturing.capture_commands import TcpdumpPoint, buffer_kib, memory_bytes, tcpdump_command
from testbed.errors import TestbedError

FLUSH_S = 1.1
"""Longest time after a relevant packet until tcpdump has it, unless the machine is too busy to run it.

The kernel hands packets over in blocks at least every second (tcpdump's timeout).
"""
READY_TIMEOUT_S = 20.0
END_TIMEOUT_S = 20.0
ASK_PERIOD_S = 0.05

LISTENING = b"listening on"
COUNTS = re.compile(r"(\d+) packets? (captured|received by filter|dropped by kernel)")


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """Packets that a capture holds; counts are None when tcpdump did not report them (it was killed)."""

    capture: CapturePlan
    packets: int | None
    kernel_drops: int | None


@dataclass(slots=True)
class _Running:
    point: TcpdumpPoint
    process: asyncio.subprocess.Process
    output: bytearray = field(default_factory=bytearray)
    ending: bool = False
    watcher: "asyncio.Task[None] | None" = None


def parse_counts(output: str) -> tuple[int | None, int | None]:
    """Parse the packets captured and the packets dropped by the kernel from tcpdump's last output."""
    counts = {what: int(number) for number, what in COUNTS.findall(output)}
    return counts.get("captured"), counts.get("dropped by kernel")


def has_all(output: str) -> bool:
    """Return whether tcpdump has written all packets that had arrived when it first reported its counts."""
    counts = [(what, int(number)) for number, what in COUNTS.findall(output)]
    by_kind = {kind: [number for what, number in counts if what == kind] for kind, _ in counts}
    if not by_kind.get("dropped by kernel"):  # tcpdump prints all counts at once, this one last
        return False
    return by_kind["captured"][-1] + by_kind["dropped by kernel"][-1] >= by_kind["received by filter"][0]


class TcpdumpCaptures:
    """All captures of a run. `on_problem` is called when one ends by itself."""

    def __init__(self, directory: Path, *, root: bool, on_problem: Callable[[str], None]) -> None:
        self._directory = directory
        self._root = root
        self._on_problem = on_problem
        self._running: list[_Running] = []

    async def start(self, points: Sequence[TcpdumpPoint], *, snaplen_bytes: int | None) -> None:
        """Start one tcpdump for each point and wait until all listen. Raises TestbedError if one does not."""
        buffer = buffer_kib(len(points), memory_bytes())
        for point in points:
            path = self._directory / point.capture.file
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
        """End all captures once they hold all packets that arrived. Idempotent.

        Call it at least FLUSH_S after the last relevant packet.
        """
        await asyncio.gather(*(_until_it_has_all(running) for running in self._running))
        for running in self._running:
            running.ending = True
            _send(running, signal.SIGINT)
        results = await asyncio.gather(*(self._end(running) for running in self._running))
        self._running = []
        return results

    async def _await_listening(self, running: _Running) -> None:
        assert running.process.stderr is not None
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                while LISTENING not in running.output:
                    line = await running.process.stderr.readline()
                    running.output += line
                    if not line:
                        raise TestbedError(
                            f"the capture {_name(running)} did not start: {_last_words(running)}"
                        )
        except TimeoutError:
            raise TestbedError(f"the capture {_name(running)} did not start in {READY_TIMEOUT_S} s") from None

    async def _watch(self, running: _Running) -> None:
        assert running.process.stderr is not None
        while data := await running.process.stderr.read(4096):
            running.output += data
        code = await running.process.wait()
        if not running.ending:
            self._on_problem(f"the capture {_name(running)} ended by itself ({code}): {_last_words(running)}")

    async def _end(self, running: _Running) -> CaptureResult:
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await (running.process.wait() if running.watcher is None else running.watcher)
        except TimeoutError:
            _send(running, signal.SIGKILL)
            self._on_problem(f"the capture {_name(running)} had to be killed")
        await running.process.wait()
        packets, drops = parse_counts(running.output.decode(errors="replace"))
        return CaptureResult(running.point.capture, packets, drops)


async def _until_it_has_all(running: _Running) -> None:
    """Wait until tcpdump has read all packets that arrived.

    On a busy machine tcpdump may be behind, and it discards unread packets when it ends. It is therefore
    asked for its counts (SIGUSR1) first.
    """
    if running.watcher is None:  # not all captures listen yet: no packet matters
        return
    with contextlib.suppress(TimeoutError):  # the final counts show the loss
        async with asyncio.timeout(END_TIMEOUT_S):
            while not running.watcher.done() and not has_all(running.output.decode(errors="replace")):
                _send(running, signal.SIGUSR1)
                await asyncio.sleep(ASK_PERIOD_S)


def _send(running: _Running, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended by itself, and its watcher has reported that
        running.process.send_signal(number)


def _name(running: _Running) -> str:
    return running.point.capture.file


def _last_words(running: _Running) -> str:
    """Return the last output of a capture in one line, without the message that it listens."""
    lines = running.output.decode(errors="replace").splitlines()
    return " ".join(line for line in lines if LISTENING.decode() not in line) or "no output"
