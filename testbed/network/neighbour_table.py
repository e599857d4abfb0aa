"""Changes of a host's neighbour table over a netlink socket that stays open (rtnetlink(7), netlink(7)).

`ip` does the same, but its start takes 100 ms on a busy machine, and hosts are separated during a run.
"""

import errno
import os
import socket
from collections.abc import Iterable
from struct import Struct

from testbed.errors import TestbedError
from testbed.network.network_layout import Neighbour

NETLINK_ROUTE = 0
RTM_NEWNEIGH, NLMSG_ERROR = 28, 2  # linux/rtnetlink.h, linux/netlink.h
NLM_F_REQUEST, NLM_F_ACK, NLM_F_REPLACE, NLM_F_CREATE = 0x1, 0x4, 0x100, 0x400
NDA_DST, NDA_LLADDR = 1, 2  # linux/neighbour.h
NUD_PERMANENT = 0x80
ANSWER_S_MAX = 20.0
ANSWER_BYTES_MAX = 8192

_HEADER = Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence number, port
_NEIGHBOUR = Struct("=BxxxiHBB")  # ndmsg: family, interface, state, flags, type
_ATTRIBUTE = Struct("=HH")  # rtattr: length, type
_ERROR = Struct("=i")


class NeighbourTable:
    """The neighbour table of the current network namespace. Open until `close`; thread-safe."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE)
        self._socket.settimeout(ANSWER_S_MAX)
        self._numbers = {name: number for number, name in socket.if_nameindex()}

    def replace(self, entries: Iterable[Neighbour]) -> None:
        """Add or replace permanent entries. Raises TestbedError."""
        for entry in entries:
            try:
                self._socket.send(replacement(entry, self._numbers[entry.interface]))
                code = answer_code(self._socket.recv(ANSWER_BYTES_MAX))
            except OSError as error:
                code = error.errno or errno.EIO
            if code:
                raise TestbedError(f"cannot set the neighbour {entry.address}: {os.strerror(code)}")

    def close(self) -> None:
        """Close the socket; idempotent."""
        self._socket.close()


def replacement(entry: Neighbour, interface: int) -> bytes:
    """Return the netlink request for an entry; `interface` is its interface's index in its namespace."""
    body = _NEIGHBOUR.pack(socket.AF_INET, interface, NUD_PERMANENT, 0, 0)
    body += _attribute(NDA_DST, socket.inet_aton(entry.address))
    body += _attribute(NDA_LLADDR, bytes.fromhex(entry.mac.replace(":", "")))
    flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_REPLACE | NLM_F_CREATE
    return _HEADER.pack(_HEADER.size + len(body), RTM_NEWNEIGH, flags, 0, 0) + body


def answer_code(answer: bytes) -> int:
    """Return the error number in a netlink answer, 0 for an acknowledgement."""
    _, kind, _, _, _ = _HEADER.unpack_from(answer)
    return -int(_ERROR.unpack_from(answer, _HEADER.size)[0]) if kind == NLMSG_ERROR else errno.EPROTO


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return (_ATTRIBUTE.pack(length, kind) + value).ljust(-(-length // 4) * 4, b"\0")
