"""Observations of a network by its hosts. Runs inside the sandbox, beside the network."""

import errno
import json
import select
import socket
import struct
import subprocess
import time
from collections.abc import Iterable
from statistics import median
from typing import Any

from experiments.planned.changes import LinkChange, LinkDirectionName, LinkState
from experiments.planned.plan import Plan
from testbed.links.emulator import Applied
from testbed.network.namespaces import in_each_namespace
from testbed.network.network import Network

IP_RECVERR = 11  # linux/in.h: report every ICMP error to the socket
ETH_P_ALL = 3
UDP_SEGMENT = 103  # linux/udp.h: the size of the datagrams in a bundle
ECHO_PORT = 4000
ANSWER_S_MAX = 20.0
"""For an answer that is certain to come."""
SILENCE_S = 0.5
"""So long without an answer counts as none."""


def in_host(network: Network, host: str, work: Any) -> Any:
    """Return the result of `work()` inside the host's network namespace."""
    return in_each_namespace({host: network.netns(host)}, [host], lambda _: work())[host]


def told(network: Network, host: str, *command: str) -> Any:
    """Return the JSON output of a command in the host."""
    return in_host(network, host, lambda: json.loads(subprocess.check_output(command, text=True)))


def bundle_frames(network: Network, sender: str, address: str) -> list[int]:
    """Send a bundle of datagrams (UDP_SEGMENT) from a host; return the lengths of the frames that leave
    it.
    """

    def send() -> list[int]:
        with (
            packet_socket() as packets,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        ):
            control = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", 1_000))]
            datagrams.sendmsg([bytes(5_300)], control, 0, (address, ECHO_PORT))
            frames: list[bytes] = []
            while select.select([packets], [], [], SILENCE_S)[0]:
                frames.append(packets.recv(1 << 17))
        return [
            len(frame) for frame in frames if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP
        ]

    found: list[int] = in_host(network, sender, send)
    return found


def neighbours(network: Network, host: str) -> list[dict[str, Any]]:
    return told(network, host, "ip", "-j", "neighbour", "show")


def routes(network: Network, host: str) -> list[dict[str, Any]]:
    return told(network, host, "ip", "-j", "route", "show")


def reachable(network: Network) -> dict[str, bool]:
    """Return whether echoes return, for each two regions ("r0 r1")."""
    return {f"{sample.origin} {sample.target}": bool(sample.rtt_us) for sample in network.probe("before")}


def round_trips_us(network: Network) -> dict[str, float]:
    """Return the shortest round trip between each two regions ("r0 r1")."""
    return {f"{sample.origin} {sample.target}": min(sample.rtt_us) for sample in network.probe("before")}


def timer_lateness_us() -> float:
    """Return the current median lateness of a plain timer: a link's own timer may be as late."""
    late_us = []
    for _ in range(50):
        due = time.monotonic() + 0.005
        time.sleep(0.005)
        late_us.append((time.monotonic() - due) * 1e6)
    return median(late_us)


def set_link(
    network: Network, plan: Plan, name: str, state: LinkState, *directions: LinkDirectionName
) -> list[Applied]:
    """Set a link's state, in both directions unless some are given; its parameters stay."""
    link = next(link for link in plan.links if link.name == name)
    parameters_of = {LinkDirectionName.FORWARD: link.forward, LinkDirectionName.BACKWARD: link.backward}
    return [
        network.change(LinkChange(0, "fault", name, direction, state, parameters_of[direction]))
        for direction in directions or tuple(LinkDirectionName)
    ]


def what_sending_says(
    network: Network, host: str, address: str, timeout_s: float = ANSWER_S_MAX, size: int = 1
) -> str | None:
    """Return the error that a UDP sender gets from the network within the timeout, None for silence."""
    with in_host(network, host, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sender:
        sender.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        sender.settimeout(timeout_s)
        try:
            sender.connect((address, ECHO_PORT))
            sender.send(bytes(size))
            sender.recv(16)
        except TimeoutError:
            return None
        except OSError as error:
            return errno.errorcode[error.errno or 0]
    return "answered"


def errors_told(sender: socket.socket, payload: bytes) -> list[str]:
    """Send a datagram; return the names of the errors that the socket has received from the network so
    far.
    """
    told_so_far = []
    for operation in (lambda: sender.recv(16), lambda: sender.send(payload)):
        try:
            operation()
        except BlockingIOError:
            pass
        except OSError as error:
            told_so_far.append(errno.errorcode[error.errno or 0])
    return told_so_far


def packet_socket() -> socket.socket:
    """Return a socket that gets every frame of every interface of its namespace."""
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))


def frames_seen(opened: Iterable[socket.socket], duration_s: float) -> int:
    """Return the number of frames that packet sockets receive during this time."""
    poller = select.poll()
    by_descriptor = {each.fileno(): each for each in opened}
    for descriptor in by_descriptor:
        poller.register(descriptor, select.POLLIN)
    end_s, seen = time.monotonic() + duration_s, 0
    while (left_s := end_s - time.monotonic()) > 0:
        for descriptor, _ in poller.poll(left_s * 1000):
            by_descriptor[descriptor].recv(65536)
            seen += 1
    return seen
