"""Senders and receivers that measure a link. They run inside the sandbox, on the sockets of a `Lab`.

Datagrams carry a number and their send time; the kernel timestamps them on arrival, so that a receiver may
read them later.
"""

import contextlib
import os
import random
import select
import socket
import struct
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import NamedTuple

SO_TIMESTAMPNS = 35
UDP_SEGMENT = 103  # linux/udp.h: cut what one call sends into datagrams of this size
SOL_UDP = 17
TCPI_DATA_SEGS_IN, TCPI_DATA_SEGS_OUT = 152, 156
BLOCK_BYTES = 1 << 18
BLOCK = random.Random(1).randbytes(BLOCK_BYTES)
DRAIN_S_MAX = 20.0
BULK_BYTES_MIN = 2 << 20
ARRIVAL_S_MAX = 20.0  # for what is certain to come
LOOKS = 10
PASSES_S = 0.2
SLOPE_POINTS_MAX = 200

_STAMP = struct.Struct("!QQ")  # number, CLOCK_REALTIME ns at sending
_TIMESPEC = struct.Struct("@ll")


class Arrival(NamedTuple):
    """A datagram that arrived. Times are CLOCK_REALTIME ns."""

    number: int
    sent_ns: int
    arrived_ns: int

    @property
    def delay_us(self) -> float:
        return (self.arrived_ns - self.sent_ns) / 1000


class Stamper:
    """Sends stamped datagrams over one link and collects those that arrive."""

    def __init__(self, sockets: tuple[socket.socket, socket.socket], *, size: int = 100) -> None:
        """Create a sender and its receiver. size: bytes of a datagram's payload."""
        self._sender, self._receiver = sockets
        self._receiver.setblocking(False)
        self._receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._size = size
        self.sent: list[int] = []  # when, by number
        self.arrivals: list[Arrival] = []

    def send(self) -> None:
        """Send one datagram."""
        now_ns = time.time_ns()
        self._sender.send(self._payload(now_ns))
        self.sent.append(now_ns)

    def send_offloaded(self, count: int) -> None:
        """Send `count` datagrams in one frame."""
        self._sender.setsockopt(SOL_UDP, UDP_SEGMENT, self._size)
        now_ns = time.time_ns()
        payloads = []
        for _ in range(count):
            payloads.append(self._payload(now_ns))
            self.sent.append(now_ns)
        self._sender.send(b"".join(payloads))

    def _payload(self, now_ns: int) -> bytes:
        return _STAMP.pack(len(self.sent), now_ns).ljust(self._size, b".")

    def fileno(self) -> int:
        return self._receiver.fileno()

    def collect(self) -> None:
        """Receive the datagrams that have arrived."""
        while True:
            try:
                data, control, _, _ = self._receiver.recvmsg(self._size, 64)
            except BlockingIOError:
                return
            seconds, nanoseconds = _TIMESPEC.unpack(control[0][2][: _TIMESPEC.size])
            self.arrivals.append(Arrival(*_STAMP.unpack_from(data), seconds * 1_000_000_000 + nanoseconds))

    def collect_until_last(self, quiet_s: float = ARRIVAL_S_MAX) -> bool:
        """Take what arrives until the last one sent has, or, as that may be lost, nothing has for `quiet_s`;
        whether it has.

        A sender that waits for this now and then cannot overrun the receiver's buffer.
        """
        self.collect()
        while not self.arrivals or self.arrivals[-1].number < len(self.sent) - 1:
            if not select.select([self._receiver], [], [], quiet_s)[0]:
                return False
            self.collect()
        return True

    def collect_all(self, count: int | None = None) -> None:
        """Take arrivals until `count` have arrived in all (default: as many as were sent).

        Give up if nothing arrives for ARRIVAL_S_MAX.
        """
        wanted = len(self.sent) if count is None else count
        self.collect()
        while len(self.arrivals) < wanted and select.select([self._receiver], [], [], ARRIVAL_S_MAX)[0]:
            self.collect()

    def passes(self) -> bool:
        """Return whether a datagram arrives: after a link was down, a kernel needs a moment to forward
        again.
        """
        before = len(self.arrivals)
        self.send()
        self.collect_until_last(PASSES_S)
        return len(self.arrivals) > before

    def collect_until_quiet(self, quiet_s: float) -> None:
        """See `collect_until_quiet`."""
        collect_until_quiet([self], quiet_s)


def collect_until_quiet(stampers: Sequence[Stamper], quiet_s: float) -> None:
    """Receive until nothing has arrived for `quiet_s`: for packets that must not arrive.

    The time is divided into several waits, because a stalled machine would otherwise seem quiet.
    """
    looks = 0
    while looks < LOOKS:
        for stamper in stampers:
            stamper.collect()
        came = select.select(stampers, [], [], quiet_s / LOOKS)[0]
        looks = 0 if came else looks + 1


def send_steadily(stampers: Sequence[Stamper], count: int, interval_s: float) -> list[float]:
    """Send `count` datagrams through each, one every `interval_s`; return the timer's lateness each time, in
    us.
    """
    lateness_us = []
    due = time.monotonic()
    for _ in range(count):
        for stamper in stampers:
            stamper.send()
            stamper.collect()
        due += interval_s
        time.sleep(max(0.0, due - time.monotonic()))
        lateness_us.append((time.monotonic() - due) * 1e6)
    return lateness_us


@dataclass(frozen=True, slots=True)
class Transfer:
    """The result of a bulk transfer over TCP."""

    goodput_bits_per_s: float  # after slow start, while data was sent
    intact: bool  # all bytes arrived in order
    segments_sent: int  # data segments, retransmitted ones included, by the sender's kernel
    segments_received: int  # by the receiver's


def transfer(sockets: tuple[socket.socket, socket.socket], seconds: float, *, start_s: float) -> Transfer:
    """Send as much as TCP accepts for `seconds`, and BULK_BYTES_MIN at least; the first `start_s` do not
    count for the goodput.
    """
    sender, receiver = sockets
    with contextlib.suppress(OSError):  # not every kernel has it: then its own does
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    if (child := os.fork()) == 0:
        try:
            _send_bulk(sender, seconds)
        finally:
            os._exit(0)
    checksum, arrivals = _receive_bulk(receiver, seconds + DRAIN_S_MAX)
    os.waitpid(child, 0)
    begin = arrivals[0][0]
    counted = [(at, total) for at, total in arrivals if at - begin >= start_s]
    return Transfer(
        goodput_bits_per_s=_median_slope(counted) * 8,
        intact=checksum == _checksum_of_bulk(arrivals[-1][1]),
        segments_sent=_tcp_info(sender, TCPI_DATA_SEGS_OUT),
        segments_received=_tcp_info(receiver, TCPI_DATA_SEGS_IN),
    )


def _median_slope(points: Sequence[tuple[float, int]]) -> float:
    """Return the slope of the line through most of the points (Theil and Sen's estimator).

    If the machine stalls, all data of that time is read at once afterwards. Such a moment distorts the slope
    between the first and the last point, but not a median of slopes.
    """
    some = points[:: max(1, len(points) // SLOPE_POINTS_MAX)]
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(some, 2) if x2 > x1]
    return median(slopes)


def _send_bulk(sender: socket.socket, seconds: float) -> None:
    end, sent = time.monotonic() + seconds, 0
    while time.monotonic() < end or sent < BULK_BYTES_MIN:
        sender.sendall(BLOCK)
        sent += len(BLOCK)
    sender.shutdown(socket.SHUT_WR)


def _receive_bulk(receiver: socket.socket, seconds: float) -> tuple[int, list[tuple[float, int]]]:
    """Return the checksum of all received data, and the received amount over time."""
    receiver.settimeout(seconds)
    checksum = total = 0
    arrivals = []
    while data := receiver.recv(BLOCK_BYTES):
        checksum = zlib.crc32(data, checksum)
        total += len(data)
        arrivals.append((time.monotonic(), total))
    return checksum, arrivals


def _checksum_of_bulk(total: int) -> int:
    """Return the checksum of the first `total` bytes of a repeated block."""
    checksum = 0
    for _ in range(total // BLOCK_BYTES):
        checksum = zlib.crc32(BLOCK, checksum)
    return zlib.crc32(BLOCK[: total % BLOCK_BYTES], checksum)


def _tcp_info(sock: socket.socket, offset: int) -> int:
    """Return a 32-bit field of struct tcp_info (linux/tcp.h)."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=I", info, offset)[0])
