"""One interface of a link's middle: a packet socket that receives through a ring and sends plainly.

The receive ring (PACKET_RX_RING, TPACKET_V2; packet(7), Documentation/networking/packet_mmap.rst) makes
the speed independent of `net.core.rmem_max`, which an ordinary user cannot raise. Each slot takes a whole
offloaded frame of 64 KiB; with PACKET_VNET_HDR the 10 bytes of its vnet header stand right before
`tp_mac`. The kernel stamps each frame on arrival (CLOCK_REALTIME), so being late to read it does not make
it late to leave.

Not here: when a frame leaves (`lane`), and in which order ports are read (`loop`).
"""

import mmap
import socket
import struct

from testbed.links.relay.segments import VNET_BYTES

SOL_PACKET = 263
PACKET_ADD_MEMBERSHIP, PACKET_RX_RING, PACKET_STATISTICS = 1, 5, 6
PACKET_VERSION, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 10, 15, 23
PACKET_MR_PROMISC = 1
TPACKET_V2 = 1
TP_STATUS_USER = 1
ETH_P_ALL = 3

BLOCK_BYTES = 1 << 20
SLOT_BYTES = 68 << 10  # a frame of 64 KiB with the ring's header, vnet header and Ethernet header
SLOTS_PER_BLOCK = BLOCK_BYTES // SLOT_BYTES
STOCK_BUFFER_BYTES = 212_992  # net.core.rmem_max as Linux ships it; the socket never asks for more
STAMP_AGE_MAX_NS = 1_000_000_000  # an older (or future) stamp means that the clock was set: take now instead

_HEADER = struct.Struct("=IIIHHII")  # tpacket2_hdr: status, len, snaplen, mac, net, sec, nsec


class Port:
    """The socket and ring of one interface, open from construction to `close`."""

    def __init__(self, interface: str, blocks: int) -> None:
        """Open `interface` with a ring of `blocks` MiB. Raises OSError."""
        self.interface = interface
        self.dropped_kernel = 0
        self.truncated = 0
        self._slots = [
            block * BLOCK_BYTES + slot * SLOT_BYTES
            for block in range(blocks)
            for slot in range(SLOTS_PER_BLOCK)
        ]
        self._next = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._ring = self._set_up(blocks)
        except BaseException:
            self._socket.close()
            raise
        self._status = memoryview(self._ring).cast("I")

    def _set_up(self, blocks: int) -> mmap.mmap:
        sock = self._socket
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STOCK_BUFFER_BYTES // 2)  # the kernel doubles it
        sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        request = struct.pack("=IIII", BLOCK_BYTES, blocks, SLOT_BYTES, blocks * SLOTS_PER_BLOCK)
        sock.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
        ring = mmap.mmap(sock.fileno(), blocks * BLOCK_BYTES)
        sock.bind((self.interface, ETH_P_ALL))
        index = socket.if_nametoindex(self.interface)
        membership = struct.pack("=iHH8s", index, PACKET_MR_PROMISC, 0, b"")
        sock.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)
        return ring

    def fileno(self) -> int:
        """The descriptor to wait on, and to write outgoing frames to."""
        return self._socket.fileno()

    def receive(self, now_ns: int, real_now_ns: int) -> list[tuple[bytes, int]]:
        """Every frame in the ring, vnet header first, with its arrival in terms of `now_ns`.

        `now_ns` and `real_now_ns` are the same instant by CLOCK_MONOTONIC and by CLOCK_REALTIME.
        """
        ring, status, slots, at = self._ring, self._status, self._slots, self._next
        unpack, last = _HEADER.unpack_from, len(self._slots)
        frames: list[tuple[bytes, int]] = []
        for _ in range(last):
            slot = slots[at]
            if not status[slot >> 2] & TP_STATUS_USER:
                break
            _, length, kept, mac, _, seconds, nanoseconds = unpack(ring, slot)
            age = real_now_ns - seconds * 1_000_000_000 - nanoseconds
            arrival = now_ns - age if 0 <= age < STAMP_AGE_MAX_NS else now_ns
            if kept == length:
                frames.append((ring[slot + mac - VNET_BYTES : slot + mac + kept], arrival))
            else:
                self.truncated += 1
            status[slot >> 2] = 0
            at = at + 1 if at + 1 < last else 0
        self._next = at
        return frames

    def take_statistics(self) -> None:
        """Add the kernel's drops since the last call (reading resets them) to `dropped_kernel`."""
        _, drops = struct.unpack("=II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.dropped_kernel += drops

    def clear_error(self) -> int:
        """Take the socket's pending error (ENETDOWN after the interface went down; it heals by itself)."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def close(self) -> None:
        """Close the socket; idempotent."""
        self._socket.close()
