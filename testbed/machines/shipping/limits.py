"""The limits of shipping: bytes per second from all machines together, and disk here. Thread-safe."""

import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path

from testbed.machines.shipping.protocol import CHUNK_BYTES_MAX

BURST_S = 0.25
"""The burst after a pause, in seconds at the rate, and the transmission time of a chunk."""
CHUNK_BYTES_MIN = 4 << 10
FREE_BYTES_MIN = 256 << 20
"""Disk space that always stays free, so that the run can end and be recorded."""
LOOK_EVERY_BYTES = 64 << 20

PATIENCE_S = 60.0
RETRY_S = 0.1


@dataclass(frozen=True, slots=True)
class ShippingLimits:
    """The limits for shipping one run.

    patience_s: how long a machine may deliver no data, over all retries, until it is given up. retry_s: the
    first pause before another connection.
    """

    rate_bits_per_s: int | None = None
    disk_bytes: int | None = None
    patience_s: float = PATIENCE_S
    retry_s: float = RETRY_S


class RateBudget:
    """A token bucket (cf. RFC 2697) for requests. Times are seconds of any clock.

    A request books its full size; bytes that compression saved are released afterwards.
    """

    def __init__(self, bits_per_s: int | None) -> None:
        self._bytes_per_s = None if bits_per_s is None else bits_per_s / 8
        self._free_s = float("-inf")  # when the bytes booked so far have arrived
        self._lock = threading.Lock()

    @property
    def chunk_bytes(self) -> int:
        """The number of bytes to request at once."""
        if self._bytes_per_s is None:
            return CHUNK_BYTES_MAX
        return min(CHUNK_BYTES_MAX, max(CHUNK_BYTES_MIN, int(self._bytes_per_s * BURST_S)))

    def book(self, size: int, now_s: float) -> float:
        """Book `size` bytes if the rate allows it now; returns 0, or the seconds to wait instead."""
        if self._bytes_per_s is None:
            return 0.0
        with self._lock:
            start_s = max(self._free_s, now_s - BURST_S)
            if start_s > now_s:
                return start_s - now_s
            self._free_s = start_s + size / self._bytes_per_s
            return 0.0

    def give_back(self, size: int) -> None:
        """Release booked bytes that did not arrive, or arrived compressed."""
        if self._bytes_per_s is not None:
            with self._lock:
                self._free_s -= size / self._bytes_per_s


@dataclass(slots=True)
class DiskBudget:
    """The disk budget of a run. used_bytes: the size of its files so far."""

    folder: Path
    limit_bytes: int | None
    used_bytes: int
    _until_look_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, size: int) -> str:
        """Reserve bytes; returns why that is impossible, or empty text."""
        with self._lock:
            if self.limit_bytes is not None and self.used_bytes + size > self.limit_bytes:
                return f"the limit of {self.limit_bytes / 1e6:,.0f} MB on this run's files is reached"
            if self._until_look_bytes < size:
                free_bytes = shutil.disk_usage(self.folder).free
                if free_bytes < FREE_BYTES_MIN + size:
                    return f"the disk of {self.folder} has only {free_bytes / 1e6:,.0f} MB left"
                self._until_look_bytes = min(LOOK_EVERY_BYTES, free_bytes - FREE_BYTES_MIN)
            self._until_look_bytes -= size
            self.used_bytes += size
            return ""

    def give_back(self, size: int) -> None:
        """Release reserved bytes that were not written, or were removed."""
        with self._lock:
            self.used_bytes -= size


def used_bytes(folder: Path) -> int:
    """Return the size of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
