"""Appends to a record of deliveries: one record per event, each with one write, which survives a crash."""

import os
import threading
import time
import zlib

from cutset_client.deliveries import RECORD, RecordKind


class DeliveryWriter:
    """A file of `deliveries`, which Cutset has created. Thread-safe."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._lock = threading.Lock()
        self._running: dict[tuple[int, int], int] = {}

    def write(self, kind: RecordKind, stream: int, seq: int, payload: bytes) -> None:
        """Record an event with the current time."""
        crc = zlib.crc32(payload)
        key = (kind, stream)
        with self._lock:
            running = self._running[key] = zlib.crc32(payload, self._running.get(key, 0))
            os.write(self._file, RECORD.pack(stream, 1, seq, time.time_ns(), crc, running, kind, 1))

    def write_subscription(self, kind: RecordKind, stream: int) -> None:
        """Record a request for a stream, or the answer to it."""
        with self._lock:
            os.write(self._file, RECORD.pack(stream, 0, 0, time.time_ns(), 0, 0, kind, 0))

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
