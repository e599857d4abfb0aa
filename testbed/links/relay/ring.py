"""A packet socket's receive ring (PACKET_RX_RING, TPACKET_V2; packet(7), packet_mmap.rst of Linux).

A ring makes the speed independent of `net.core.rmem_max`, which an ordinary user cannot raise. The kernel
copies each frame into a slot of fixed size, with the 10 bytes of its vnet header (PACKET_VNET_HDR: offloaded
frames arrive whole) right before `tp_mac`, and timestamps it on arrival (CLOCK_REALTIME), so a frame that is
read late does not leave late. A socket filter limits a ring to frames of a range of sizes; `port` explains
why.

While the relay does not read (it admits a burst, or other processes use its processor) the kernel puts
arriving frames into the rings, and drops frames that find no free slot. `ring_sizes` determines the number of
slots.
"""

import ctypes
import mmap
import os
import socket
import struct

from testbed.links.relay.offload import VNET_BYTES
from testbed.links.relay.ring_sizes import RingKind

SO_ATTACH_FILTER = 26
FILTER_INSTRUCTIONS = 5
SOL_PACKET = 263
PACKET_ADD_MEMBERSHIP, PACKET_RX_RING, PACKET_STATISTICS = 1, 5, 6
PACKET_VERSION, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 10, 15, 23
PACKET_MR_PROMISC = 1
TPACKET_V2 = 1
TP_STATUS_KERNEL = 0  # the kernel owns the slot; with any other status the slot is ours
ETH_P_ALL = 3

STOCK_BUFFER_BYTES = 212_992  # net.core.rmem_max as Linux ships it; the socket never asks for more

_HEADER = struct.Struct("=IIH2xII")  # tpacket2_hdr behind its status: len, snaplen, mac, sec, nsec
_STATUS_BYTES = 4

Frame = tuple[int, bytes]  # arrival (CLOCK_MONOTONIC ns); vnet header and Ethernet frame


class Ring:
    """One socket on one interface, for frames of a range of sizes; open from construction to `close`."""

    def __init__(self, interface: str, kind: RingKind, blocks: int) -> None:
        """Receive frames of this kind (by length with the Ethernet header). Raises OSError."""
        self._dropped = self._truncated = 0
        self._slots = [
            block * kind.block_bytes + slot * kind.slot_bytes
            for block in range(blocks)
            for slot in range(kind.block_slots)
        ]
        self._most = 0  # the largest number of slots that were full at once
        self._next = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._set_options(range(kind.above_bytes + 1, kind.frame_bytes_max + 1))
            self._make_ring(struct.pack("=IIII", kind.block_bytes, blocks, kind.slot_bytes, len(self._slots)))
            self._memory = mmap.mmap(self._socket.fileno(), blocks * kind.block_bytes)
            self._listen(interface)
        except BaseException:
            self._socket.close()
            raise
        self.status = memoryview(self._memory).cast("I")
        self.mark = 0  # the index in `status` of the next slot's status

    def _set_options(self, sizes: range) -> None:
        sock = self._socket
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STOCK_BUFFER_BYTES // 2)  # the kernel doubles it
        sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        program = ctypes.create_string_buffer(_size_filter(sizes))
        filter_ = struct.pack("@HP", FILTER_INSTRUCTIONS, ctypes.addressof(program))
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filter_)

    def _make_ring(self, request: bytes) -> None:
        """Call setsockopt(2) through ctypes, which releases the interpreter lock while the kernel works."""
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setsockopt(self._socket.fileno(), SOL_PACKET, PACKET_RX_RING, request, len(request)) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def _listen(self, interface: str) -> None:
        self._socket.bind((interface, ETH_P_ALL))
        membership = struct.pack("=iHH8s", socket.if_nametoindex(interface), PACKET_MR_PROMISC, 0, b"")
        self._socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)

    def fileno(self) -> int:
        """Return the descriptor to wait on; frames written to it leave through the interface."""
        return self._socket.fileno()

    def take(self, ahead_ns: int) -> list[Frame]:
        """Read the frames that have arrived, oldest first, at most one ring full.

        CLOCK_MONOTONIC is ahead of CLOCK_REALTIME by `ahead_ns`.
        """
        status, mark = self.status, self.mark
        frames: list[Frame] = []
        if not status[mark]:
            return frames
        memory, slots, at, unpack = self._memory, self._slots, self._next, _HEADER.unpack_from
        size = len(slots)
        for _ in range(size):
            slot = slots[at]
            length, kept, mac, seconds, nanoseconds = unpack(memory, slot + _STATUS_BYTES)
            if kept == length:
                mac += slot
                arrival_ns = seconds * 1_000_000_000 + nanoseconds + ahead_ns
                frames.append((arrival_ns, memory[mac - VNET_BYTES : mac + kept]))
            else:
                self._truncated += 1
            status[mark] = TP_STATUS_KERNEL
            at = at + 1 if at + 1 < size else 0
            mark = slots[at] >> 2
            if not status[mark]:
                break
        self._next, self.mark = at, mark
        self._most = max(self._most, len(frames))
        return frames

    @property
    def peak(self) -> float:
        """The highest fill level so far, 0 to 1; at 1 the kernel drops frames."""
        return self._most / len(self._slots)

    def dropped(self) -> int:
        """Return the number of frames that the kernel dropped or truncated for lack of space so far."""
        _, drops = struct.unpack("=II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._dropped += drops  # reading resets the kernel's count
        return self._dropped + self._truncated

    def clear_error(self) -> int:
        """Clear the pending error (ENETDOWN), so that the socket receives once the interface is up again."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def close(self) -> None:
        """Close the socket; idempotent. Waits for the kernel, see `in_parallel`."""
        self.status.release()
        self._memory.close()
        self._socket.close()


def sending_socket(interface: str) -> socket.socket:
    """Open a packet socket that only sends. Raises OSError."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    try:
        sock.setblocking(False)
        sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sock.bind((interface, 0))
    except BaseException:
        sock.close()
        raise
    return sock


def _size_filter(sizes: range) -> bytes:
    """Return a classic BPF program (linux/filter.h) that accepts frames whose length is in `sizes`."""
    return b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (0x80, 0, 0, 0),  # load the length
            (0x35, 0, 2, sizes.start),  # below the first: drop
            (0x25, 1, 0, sizes.stop - 1),  # above the last: drop
            (0x06, 0, 0, 0xFFFFFFFF),  # accept the whole frame
            (0x06, 0, 0, 0),  # drop
        )
    )
