"""A node process from its fork to its end: namespace, files, machine, event loop, messages to the launcher.

The launcher forks; the child calls `run_node` and never returns to the launcher's own loop. Both exchange
JSON over a packet socket: the node receives go, stop_drivers and finish, and sends ready and progress. When
that socket ends, or the launcher dies, the process ends.
"""

import asyncio
import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from node.core import machine as m
from node.core.deliveries import encode_file_header
from node.core.errors import StorageError, failure_text
from node.core.message_layout import Codec
from node.core.specification import NodeSpec
from node.core.wrong_clock import WrongClock
from node.systems import build_machine, codec_of
from node.tcp.adapter import Adapter
from node.tcp.child import enter_host, log_line, open_append, send_to_launcher
from node.tcp.privileges import drop_capabilities_keeping_access
from node.tcp.watching import Watching

new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
with contextlib.suppress(ImportError):  # a little slower without
    import uvloop

    new_event_loop = uvloop.new_event_loop

MESSAGE_BYTES_MAX = 65_536
STREAMS_IN_REPORT_MAX = 1_000
"""Streams in a report, about 40 bytes each in JSON: a message also has room for the longest name.
"""
PROGRESS_PERIOD_S = 0.25
PUBLISHING_PERIOD_S = 1.0
"""Interval between reports while drivers publish: only the end of a run waits for them."""
TELL_S = 1.0
"""Time for the launcher to accept a message that must not be lost."""


def run_node(given: dict[str, Any], control: socket.socket) -> int:
    """Run one node until it has finished or the launcher has ended; return the exit code."""
    spec = NodeSpec.from_json(given)
    enter_host(spec)
    written = [Path(each).parent for each in (spec.log, spec.deliveries, spec.storage) if each is not None]
    drop_capabilities_keeping_access(written, [Path(__file__).parent])
    with (
        open_append(spec.log) as log,
        open_append(spec.deliveries, header=encode_file_header()) as deliveries,
    ):
        runner = asyncio.Runner(loop_factory=new_event_loop)
        with runner:
            return runner.run(_Node(spec, control, log, deliveries).run())


class _Node:
    """One node process; its files and its messages to the launcher (`node.tcp.adapter.NodeOutputs`)."""

    def __init__(self, spec: NodeSpec, control: socket.socket, log: Any, deliveries: Any) -> None:
        self._spec = spec
        self._control = control
        self._log = log
        self._deliveries = deliveries
        self._machine: m.Machine | None = None
        self._adapter: Adapter
        self._failure: BaseException | None = None
        self._watching: Watching | None = None
        self._progress: asyncio.TimerHandle
        self._progress_period_s = PROGRESS_PERIOD_S

    async def run(self) -> int:
        """Run until finished. An exception of the machine is logged and reported, and ends the process."""
        try:
            await self._run()
        except StorageError:  # logged already
            raise
        except Exception as error:  # noqa: BLE001 - raised below
            self._failure = error
        if self._failure is None:
            return 0
        problem = failure_text(self._failure, self._machine)
        self.log(m.Log("failed", {"problem": problem}, "error"))
        self._send({"did": "failed", "problem": problem})
        raise self._failure

    async def _run(self) -> None:
        self._machine = build_machine(self._spec, Random(self._spec.seed))  # noqa: S311 - repeatable
        storage = Path(self._spec.storage) if self._spec.storage is not None else None
        codec = codec_of(self._spec.system) or Codec([])
        if self._spec.watches:
            self._watching = Watching(self._spec.watches, codec, self._send_reliably)
        self._adapter = Adapter(
            self._machine,
            codec,
            self._spec.address,
            self,
            storage,
            sent=self._watching.sent if self._watching is not None else None,
        )
        if self._spec.clock is not None:
            self._adapter.set_clock(self._spec.clock)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        self._control.setblocking(False)
        loop.add_reader(self._control.fileno(), self._read_control)
        try:
            self._adapter.start()
        except StorageError as error:
            self.log(m.Log("storage_damaged", {"problem": str(error)}, "error"))
            raise
        self._report_progress()
        await self._adapter.finished.wait()
        self._progress.cancel()
        self._send_progress()
        loop.remove_reader(self._control.fileno())
        await self._adapter.close()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the node after an exception in a callback, because its state may be inconsistent."""
        self._failure = self._failure or context.get("exception") or RuntimeError(context["message"])
        self._adapter.finished.set()

    def log(self, line: m.Log) -> None:
        """Write a line of the log, as JSON."""
        self._log.write(log_line(line))

    def record(self, data: bytes) -> None:
        """Write delivery records."""
        self._deliveries.write(data)

    def beside(self, suffix: str, data: bytes) -> None:
        """Append to another file beside the records, which is created when needed."""
        if self._spec.deliveries is None:
            return
        with Path(self._spec.deliveries).with_suffix(suffix).open("ab", buffering=0) as file:
            file.write(data)

    def ready(self) -> None:
        """Report to the launcher that the node is ready."""
        self._send({"did": "ready"})

    def _read_control(self) -> None:
        try:
            data = self._control.recv(MESSAGE_BYTES_MAX)
        except BlockingIOError:
            return
        if not data:
            os._exit(1)  # the launcher has ended: nothing waits for this process
        message = json.loads(data)
        match message["do"]:
            case "go":
                ahead_us = (message["start_ns"] - time.time_ns()) // 1000
                if self._watching is not None:
                    self._watching.begin(message["start_ns"] - message["late_us"] * 1000)
                self._progress_period_s = PUBLISHING_PERIOD_S
                self._adapter.give(m.Go(self._adapter.now_us(ahead_us), message["late_us"]))
            case "stop_drivers":
                self._progress_period_s = PROGRESS_PERIOD_S
                self._progress.cancel()
                self._adapter.give(m.StopDrivers())
                self._report_progress()
            case "give_up":
                self._adapter.give(m.GiveUp(message["process"]))
            case "clock":
                self._adapter.set_clock(WrongClock(**message["clock"]))
            case "finish":
                self._adapter.give(m.Finish())

    def _report_progress(self) -> None:
        """Report now, and periodically from now on. An exception of the machine ends the node."""
        loop = asyncio.get_running_loop()
        self._progress = loop.call_later(self._progress_period_s, self._report_progress)
        self._send_progress()

    def _send_progress(self) -> None:
        assert self._machine is not None
        for report in progress_reports(self._machine.progress()):
            self._send(report)

    def _send(self, message: dict[str, Any]) -> None:
        send_to_launcher(self._control, self._spec.name, message)

    def _send_reliably(self, message: dict[str, Any]) -> bool:
        """Send the launcher a message that must not be lost; return False if it does not read."""
        _, writable, _ = select.select([], [self._control], [], TELL_S)
        if writable:
            self._send(message)
        return bool(writable)


def progress_reports(progress: m.NodeProgress) -> Iterator[dict[str, Any]]:
    """Yield progress reports to the launcher, each small enough for one message.

    Reports are cumulative. Only the last one may report that nothing more is published.
    """
    counts = [
        *(("published", stream, seq) for stream, seq in progress.published.items()),
        *(("delivered", stream, seq) for stream, seq in progress.delivered.items()),
    ]
    for first in range(0, len(counts), STREAMS_IN_REPORT_MAX):
        report: dict[str, Any] = {"did": "progress", "published": {}, "delivered": {}}
        for what, stream, seq in counts[first : first + STREAMS_IN_REPORT_MAX]:
            report[what][stream] = seq
        is_last = first + STREAMS_IN_REPORT_MAX >= len(counts)
        yield {**report, "silent": progress.silent and is_last}
