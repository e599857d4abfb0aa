"""Appends to a record of deliveries: one record per event, each with one write, which survives a crash.

Times are true, even if a fault makes this process's CLOCK_REALTIME wrong.
"""

import os
import threading
import time
import zlib

from cutset_client.deliveries import RECORD, RecordKind


class DeliveryWriter:
    """A file of `deliveries`, which Cutset has created. Thread-safe.

    true_epoch_ns: the true CLOCK_REALTIME when CLOCK_MONOTONIC was 0, if CLOCK_REALTIME may become wrong.
    """

    def __init__(self, path: str, true_epoch_ns: int | None = None) -> None:
        self._true_epoch_ns = true_epoch_ns
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._lock = threading.Lock()
        self._running: dict[tuple[int, int], int] = {}

    def now_ns(self) -> int:
        """Return the true time."""
        if self._true_epoch_ns is None:
            return time.time_ns()
        return self._true_epoch_ns + time.monotonic_ns()

    def write(self, kind: RecordKind, stream: int, seq: int, payload: bytes) -> None:
        """Record an event with the current time."""
        crc = zlib.crc32(payload)
        key = (kind, stream)
        with self._lock:
            running = self._running[key] = zlib.crc32(payload, self._running.get(key, 0))
            os.write(self._file, RECORD.pack(stream, 1, seq, self.now_ns(), crc, running, kind, 1))

    def write_subscription(self, kind: RecordKind, stream: int) -> None:
        """Record a request for a stream, or the answer to it."""
        with self._lock:
            os.write(self._file, RECORD.pack(stream, 0, 0, self.now_ns(), 0, 0, kind, 0))

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
