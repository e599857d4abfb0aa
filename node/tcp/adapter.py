"""Adapter of a machine to asyncio TCP: inputs from sockets, timers and the launcher, effects back to them.

The machine decides everything; the adapter only executes its effects, in order. The clock is CLOCK_MONOTONIC
in microseconds, and wrong if a fault says so (`set_clock`); timers follow it. Records have the true time and
are written before anything else happens, one write per input, so that a killed process leaves whole records.
"""

import asyncio
import contextlib
import os
import socket
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from node.core import machine as m
from node.core.collection_marks import MARKS_SUFFIX
from node.core.deliveries import DeliveryRecord, RecordKind, combined_crc, encode_record
from node.core.measures import MEASURES_SUFFIX, Columns
from node.core.message_layout import Codec
from node.core.wrong_clock import UPTIME_US, WrongClock
from node.tcp.connection import NodeConnection
from node.tcp.log_database import LogDatabase
from node.tcp.storage import Storage

BACKLOG = 128
JOINED_FROM_BYTES = 32_768  # from this size on, combining CRCs is faster than reading the bytes again
CLOSE_LIMIT_S = 1.0  # to flush written data at the end


class NodeOutputs(Protocol):
    """Destinations of a node's log lines and records."""

    def log(self, line: m.Log) -> None:
        """Write a line of the log."""

    def record(self, data: bytes) -> None:
        """Write whole delivery records."""

    def beside(self, suffix: str, data: bytes) -> None:
        """Write complete data to another file beside the records: marks, measures."""

    def ready(self) -> None:
        """Report that the node fulfils its role."""


class ApplicationOutputs:
    """Outputs of a machine within an application: no files, because an application has its own log."""

    def __init__(self) -> None:
        self.is_ready = asyncio.Event()

    def log(self, line: m.Log) -> None:
        """Ignore the line."""

    def record(self, data: bytes) -> None:
        """Ignore the records."""

    def beside(self, suffix: str, data: bytes) -> None:
        """Ignore marks and measures."""

    def ready(self) -> None:
        """Note that the machine fulfils its role."""
        self.is_ready.set()


class Adapter:
    """One machine and its connections, on the running event loop. `finished` is set at its end."""

    def __init__(
        self,
        machine: m.Machine,
        codec: Codec,
        address: str,
        outputs: NodeOutputs,
        storage: Path | None = None,
        *,
        dials_from_address: bool = False,
        sent: Callable[[m.Send], None] | None = None,
    ) -> None:
        """Create an adapter. sent: observes the messages that the machine has sent."""
        self.finished = asyncio.Event()
        self.after_input: Callable[[], None] = lambda: None  # for an application that waits for a result
        self._machine = machine
        self._codec = codec
        self._address = address
        self._dialling = (address, 0) if dials_from_address else None  # for a host with several addresses
        self._limit_bytes = machine.frame_limit_bytes
        self._outputs = outputs
        self._loop = asyncio.get_running_loop()
        self._connections: dict[int, NodeConnection] = {}
        self._number = 0
        self._open = 0  # connections that the event loop still has, including those closed by this side
        self._all_gone = asyncio.Event()
        self._all_gone.set()
        self._servers: list[asyncio.Server] = []
        self._clock = WrongClock()
        self._timers: dict[m.Timer, tuple[int, asyncio.TimerHandle]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._records: list[bytes] = []
        self._measured: list[tuple[int, m.Measure]] = []
        self._columns = Columns()
        self._storage = self._open_storage(storage)
        self._unstored = 0  # Append effects of a process without storage
        self._running_crc: dict[tuple[bool, int], int] = {}  # by whether published, and stream
        self._handlers: dict[type, Callable[[Any], None]] = {
            m.Listen: self._listen,
            m.Connect: self._connect,
            m.Send: self._send,
            m.AwaitWritable: self._await_writable,
            m.PauseReading: self._pause_reading,
            m.ResumeReading: self._resume_reading,
            m.Close: self._close,
            m.SetTimer: self._set_timer,
            m.CancelTimer: self._cancel_timer,
            m.Record: self._record,
            m.Measure: lambda effect: self._measured.append((time.time_ns(), effect)),
            m.Append: self._append,
            m.Rewrite: self._rewrite,
            m.Log: self._outputs.log,
            m.Ready: lambda _: self._outputs.ready(),
            m.Finished: lambda _: self.finished.set(),
        }
        if sent is not None:
            self._handlers[m.Send] = lambda effect: self._send_and_observe(effect, sent)

    def start(self) -> None:
        """Give the machine its first input, with what is stored. Raises StorageError if that is damaged."""
        self.give(m.Started(self._storage.stored()) if self._storage is not None else m.Started())

    def give(self, given: m.Input) -> None:
        """Give the machine an input, and execute its effects."""
        for effect in self._machine.handle(given, self.now_us()):
            self._handlers[type(effect)](effect)
        if self._records:
            self._outputs.record(b"".join(self._records))
            self._records.clear()
        if self._measured:
            self._outputs.beside(MEASURES_SUFFIX, self._columns.encode(self._measured))
            self._measured.clear()
        self.after_input()

    def now_us(self, later_us: int = 0) -> int:
        """Return what the machine's clock shows after `later_us` from now."""
        return self._clock.shows(time.monotonic_ns() // 1000 + UPTIME_US + later_us)

    def set_clock(self, clock: WrongClock) -> None:
        """Give the machine a clock, described by CLOCK_REALTIME."""
        realtime_us = time.time_ns() // 1000
        self._clock = clock.moved(time.monotonic_ns() // 1000 + UPTIME_US - realtime_us)
        for timer, (at_us, _) in list(self._timers.items()):
            self._set_timer(m.SetTimer(timer, at_us))

    async def close(self) -> None:
        """Flush written data, as long as peers take it, then release everything."""
        for _, timer in self._timers.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        for server in self._servers:
            server.close()
        for connection in self._connections.values():
            connection.close(abort=False)
        self._connections.clear()
        with contextlib.suppress(TimeoutError):  # a peer that reads nothing is abandoned
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await self._all_gone.wait()
        if self._storage is not None:
            await self._storage.close()

    # --- Notifications of connections (node.tcp.connection.Owner)

    def connected(self, connection: NodeConnection) -> None:
        """Register an open connection and give it its number."""
        self._number += 1
        self._open += 1
        self._all_gone.clear()
        connection.number = self._number
        self._connections[self._number] = connection
        self.give(m.Connected(connection.number, connection.peer, connection.accepted_from))

    def received(self, connection: NodeConnection, messages: Sequence[Any]) -> None:
        """Pass messages of a connection, in order, to the machine."""
        if connection.number in self._connections:
            self.give(m.Received(connection.number, messages))

    def malformed(self, connection: NodeConnection, problem: str) -> None:
        """Report bytes that are not a message to the machine."""
        if connection.number in self._connections:
            self.give(m.Malformed(connection.number, problem))

    def disconnected(self, connection: NodeConnection, reason: str) -> None:
        """Remove a lost connection; the machine is notified unless this side closed it."""
        self._open -= 1
        if not self._open:
            self._all_gone.set()
        if self._connections.pop(connection.number, None) is not None:
            self.give(m.Disconnected(connection.number, reason))

    def writable(self, connection: NodeConnection) -> None:
        """Report that a connection takes more."""
        if connection.number in self._connections:
            self.give(m.Writable(connection.number))

    # --- Effects

    def _listen(self, effect: m.Listen) -> None:
        sock = socket.create_server((self._address, effect.port), backlog=BACKLOG)
        self._start(self._serve(sock))

    async def _serve(self, sock: socket.socket) -> None:
        self._servers.append(await self._loop.create_server(self._connection, sock=sock))

    def _connection(self, peer: str | None = None) -> NodeConnection:
        return NodeConnection(self, self._codec, self._limit_bytes, peer)

    def _connect(self, effect: m.Connect) -> None:
        self._start(self._dial(effect))

    async def _dial(self, effect: m.Connect) -> None:
        connection = self._connection(effect.peer)
        try:
            async with asyncio.timeout(effect.timeout_us / 1e6):
                await self._loop.create_connection(
                    lambda: connection, effect.address, effect.port, local_addr=self._dialling
                )
        except TimeoutError as error:
            self._not_dialled(effect, connection, f"no answer within {effect.timeout_us / 1e6:g} s", error)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            self._not_dialled(effect, connection, reason, error)

    def _not_dialled(
        self, effect: m.Connect, connection: NodeConnection, reason: str, error: OSError
    ) -> None:
        """Report a failed attempt. If the connection opened at its timeout, uvloop has closed it without a
        callback.
        """
        if connection.number:
            connection.connection_lost(error)
        else:
            self.give(m.ConnectFailed(effect.peer, reason, isinstance(error, ConnectionRefusedError)))

    def _start(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _send(self, effect: m.Send) -> None:
        connection = self._connections.get(effect.connection)
        if connection is not None:
            connection.send(effect.messages)

    def _send_and_observe(self, effect: m.Send, sent: Callable[[m.Send], None]) -> None:
        self._send(effect)
        sent(effect)

    def _await_writable(self, effect: m.AwaitWritable) -> None:
        connection = self._connections.get(effect.connection)
        if connection is not None and connection.await_writable():
            self._loop.call_soon(self.writable, connection)

    def _pause_reading(self, effect: m.PauseReading) -> None:
        with contextlib.suppress(KeyError):  # lost meanwhile: there is nothing to read from
            self._connections[effect.connection].pause_reading()

    def _resume_reading(self, effect: m.ResumeReading) -> None:
        with contextlib.suppress(KeyError):  # as above
            self._connections[effect.connection].resume_reading()

    def _close(self, effect: m.Close) -> None:
        connection = self._connections.pop(effect.connection, None)
        if connection is not None:
            connection.close(abort=effect.abort)

    def _set_timer(self, effect: m.SetTimer) -> None:
        self._cancel_timer(effect)
        now_us = time.monotonic_ns() // 1000 + UPTIME_US
        delay_s = max(0, self._clock.right_us(effect.at_us) - now_us) / 1e6
        handle = self._loop.call_later(delay_s, self._fire, effect.timer)
        self._timers[effect.timer] = effect.at_us, handle

    def _cancel_timer(self, effect: m.SetTimer | m.CancelTimer) -> None:
        timer = self._timers.pop(effect.timer, None)
        if timer is not None:
            timer[1].cancel()

    def _fire(self, timer: m.Timer) -> None:
        self._timers.pop(timer, None)
        self.give(m.TimerFired(timer))

    def _open_storage(self, folder: Path | None) -> Storage | None:
        if folder is None:
            return None
        database = LogDatabase(folder, self._codec, self._limit_bytes)
        return Storage(database, self.give, self._outputs.log, self._broken)

    def _broken(self, error: BaseException) -> None:
        self._loop.call_exception_handler({"message": "storage", "exception": error})

    def _append(self, effect: m.Append) -> None:
        if self._storage is not None:
            self._storage.take(effect)
        else:
            self._unstored += 1
            self._loop.call_soon(self.give, m.Synced(self._unstored))

    def _rewrite(self, effect: m.Rewrite) -> None:
        if self._storage is not None:
            self._storage.take(effect)

    def _record(self, effect: m.Record) -> None:
        if effect.mark:
            self._outputs.beside(MARKS_SUFFIX, effect.mark)
        key, payload_bytes = (effect.kind == RecordKind.PUBLISHED, effect.stream), len(effect.payload)
        batch_crc, before = zlib.crc32(effect.payload), self._running_crc.get(key, 0)
        if payload_bytes < JOINED_FROM_BYTES:
            running_crc = zlib.crc32(effect.payload, before)
        else:
            running_crc = combined_crc(before, batch_crc, payload_bytes)
        self._running_crc[key] = running_crc
        record = DeliveryRecord(
            stream=effect.stream,
            count=effect.count,
            first_seq=effect.first_seq,
            time_ns=time.time_ns(),
            batch_crc=batch_crc,
            running_crc=running_crc,
            kind=effect.kind,
            covered=effect.covered,
        )
        self._records.append(encode_record(record))
