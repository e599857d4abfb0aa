"""Round trips between regions, measured with ICMP echoes to check that the network is as planned.

A raw socket in one host of each region sends; the other host's kernel answers, so only the links and two
kernels are measured. The kernel timestamps the replies. One thread measures all pairs at the same time. The
analysis evaluates the numbers.
"""

import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.capturing.icmp import echo_reply, echo_request
from testbed.network.namespaces import in_each_namespace

ROUNDS = 8
INTERVAL_S = 0.05
PORTION, PORTION_S = 30, 0.01
"""Echoes sent at once, and the time between two portions: those of 40 regions, 780 at once, wait in the relay
for longer than their way takes.
"""
LOOKS, LOOK_S = 20, 0.05
"""Number and duration of the polls after the last echo. The whole measurement takes 1.4 s, less if all hosts
have answered, and more with over 150 pairs.

Polls are counted rather than time: if the machine is suspended, replies that arrive meanwhile are not lost.
"""

SO_TIMESTAMPNS = 35  # asm-generic/socket.h; Python does not define it
_PAIR = struct.Struct("!I")  # the payload of an echo
_STAMP = struct.Struct("=qq")
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ProbePair:
    """Two regions and the host of each that sends or answers."""

    origin: str
    target: str
    host: str  # the host that sends
    address: str  # the address of the host that answers


def measure(pairs: Sequence[ProbePair], namespaces: Mapping[str, str]) -> list[list[float]]:
    """Measure the round trips of each pair in microseconds, in order of the pairs; lost ones are missing."""
    hosts = list(dict.fromkeys(pair.host for pair in pairs))
    sockets = in_each_namespace(namespaces, hosts, lambda _: _open())
    try:
        return _ProbeRound(pairs, sockets).run()
    finally:
        for opened in sockets.values():
            opened.close()


def _open() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_ICMP)
    opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return opened


class _ProbeRound:
    """The echoes in flight."""

    def __init__(self, pairs: Sequence[ProbePair], sockets: Mapping[str, socket.socket]) -> None:
        self._pairs = pairs
        self._sockets = sockets
        self._sent_ns: dict[tuple[int, int], int] = {}
        self._round_trips_us: list[list[float]] = [[] for _ in pairs]
        self._poller = select.poll()
        self._by_descriptor = {opened.fileno(): opened for opened in sockets.values()}
        for descriptor in self._by_descriptor:
            self._poller.register(descriptor, select.POLLIN)

    def run(self) -> list[list[float]]:
        starts = range(0, len(self._pairs), PORTION)
        gap_s = max(PORTION_S, INTERVAL_S / max(1, len(starts)))
        for sequence in range(ROUNDS):
            for start in starts:
                next_s = time.monotonic() + gap_s
                for number in range(start, min(start + PORTION, len(self._pairs))):
                    self._send(number, sequence, self._pairs[number])
                self._receive_until(next_s, all_answered=sequence == ROUNDS - 1)
        for _ in range(LOOKS):
            self._receive_until(time.monotonic() + LOOK_S, all_answered=True)
        return self._round_trips_us

    def _send(self, number: int, sequence: int, pair: ProbePair) -> None:
        packet = echo_request(number & 0xFFFF, sequence, _PAIR.pack(number))
        self._sent_ns[number, sequence] = time.time_ns()
        try:
            self._sockets[pair.host].sendto(packet, (pair.address, 0))
        except OSError:
            del self._sent_ns[number, sequence]  # no route: counts as lost

    def _receive_until(self, deadline_s: float, *, all_answered: bool = False) -> None:
        """Receive until the deadline, at least once."""
        left_s = deadline_s - time.monotonic()
        while not (all_answered and not self._sent_ns):
            for descriptor, _ in self._poller.poll(max(0.0, left_s) * 1000):
                self._receive(self._by_descriptor[descriptor])
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return

    def _receive(self, opened: socket.socket) -> None:
        try:
            data, ancillary, _, _ = opened.recvmsg(2048, 64)
        except BlockingIOError:
            return
        reply = echo_reply(data)
        if reply is None or len(reply.payload) < _PAIR.size or not ancillary:
            return
        (number,) = _PAIR.unpack_from(reply.payload)
        sent_ns = self._sent_ns.pop((number, reply.sequence), None)
        if sent_ns is not None:
            seconds, nanoseconds = _STAMP.unpack_from(ancillary[0][2])
            self._round_trips_us[number].append((seconds * _NS_PER_S + nanoseconds - sent_ns) / 1000)
