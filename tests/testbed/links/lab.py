"""A bench for links: two hosts, and any number of links between them. Runs inside the sandbox.

Host "a" is one network namespace and host "b" another. Each link has an interface in both hosts; the emulator
under test is between the other ends, in the root namespace. So links with different parameters can be
measured at the same time.
"""

import contextlib
import ctypes
import os
import socket
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from experiments.planned.changes import LinkDirectionName
from node.tcp.libc import CLONE_NEWNET
from testbed.batches import run_batch
from testbed.links.emulator import LinkEmulator
from testbed.links.selection import select_emulator
from testbed.links.wiring import LinkWiring
from testbed.network.commands import HOST_SETTINGS, OPTIONAL_SETTINGS, OUTSIDE_MTU_BYTES, ROOT_SETTINGS
from testbed.network.namespaces import in_each_namespace, write_settings
from tests.testbed.leftovers import wait_until
from tests.testbed.links.probes import Stamper
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace

SEED = 7
UNREAD_BYTES = 4 << 20  # for a receiver that gets no processor: the kernel grants net.core.rmem_max of it
UDP_PORT, TCP_PORT = 5000, 5001

Result = TypeVar("Result")


class Lab(contextlib.AbstractContextManager["Lab"]):
    """Links by name, all with one kind of emulator."""

    def __init__(
        self,
        kind: str,
        links: Mapping[str, LinkParameters | Mapping[LinkDirectionName, LinkParameters]],
        traces: Mapping[str, LinkTrace] | None = None,
    ) -> None:
        """Single parameters apply to both directions; one without any is another machine's. traces: what
        links follow forward.
        """
        self.emulator: LinkEmulator = select_emulator(kind, SEED)
        self.number = {name: number for number, name in enumerate(links)}
        self.wirings = [
            LinkWiring(
                name,
                f"a{self.number[name]}",
                f"b{self.number[name]}",
                _by_direction(parameters_of),
                traces={LinkDirectionName.FORWARD: traces[name]} if traces and name in traces else {},
            )
            for name, parameters_of in links.items()
        ]
        self._stack = contextlib.ExitStack()
        self._namespaces: dict[str, str] = {}

    def __enter__(self) -> "Lab":
        with contextlib.ExitStack() as stack:
            write_settings(ROOT_SETTINGS, optional=OPTIONAL_SETTINGS)
            for side in "ab":
                descriptor = _new_namespace()
                stack.callback(os.close, descriptor)
                self._namespaces[side] = f"/proc/{os.getpid()}/fd/{descriptor}"
                self.inside(side, lambda: write_settings(HOST_SETTINGS, optional=OPTIONAL_SETTINGS))
            self._wire()
            stack.callback(self.emulator.stop)
            self.emulator.start(self.wirings)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _wire(self) -> None:
        lines: dict[str, list[str]] = {"root": [], "a": [], "b": []}
        for side in "ab":
            for number in self.number.values():
                lines["root"] += [
                    f"link add {side}{number} mtu {OUTSIDE_MTU_BYTES} type veth"
                    f" peer name l{number} address {_mac(side, number)} netns {self._namespaces[side]}",
                    f"link set {side}{number} up",
                ]
                lines[side] += [
                    f"address add {address(side, number)}/24 dev l{number}",
                    *self._up(side, number),
                ]
        run_batch("ip", lines["root"], doing="wiring the lab")
        for side in "ab":
            self.ip(side, lines[side])

    def _up(self, side: str, number: int) -> list[str]:
        other = "b" if side == "a" else "a"
        neighbour = f"{address(other, number)} lladdr {_mac(other, number)} dev l{number}"
        return [f"link set l{number} up", f"neighbour replace {neighbour} nud permanent"]

    def down(self, side: str, link: str) -> None:
        """Take a host's end of a link down."""
        self.ip(side, [f"link set l{self.number[link]} down"])

    def up(self, side: str, link: str) -> None:
        """Take it up again."""
        self.ip(side, self._up(side, self.number[link]))

    def settle(self, link: str, stamper: Stamper) -> None:
        """Wait until all packets from host a have been lost or have arrived."""

        def passed() -> bool:
            row = self.emulator.counters()[link, LinkDirectionName.FORWARD]
            lost = row.dropped_loss + row.dropped_queue + row.dropped_blackhole + row.dropped_kernel
            lost += row.dropped_size
            return row.frames + lost == len(stamper.sent)

        wait_until(passed, f"{len(stamper.sent)} frames to pass {link} or be lost")
        stamper.collect_all(self.emulator.counters()[link, LinkDirectionName.FORWARD].frames)

    def switch_offloads_off(self, link: str) -> None:
        """Let neither host send frames of more than one segment on a link."""
        for side in "ab":
            self.ip(side, [f"link set l{self.number[link]} gso_max_segs 1"])

    def ip(self, side: str, lines: list[str]) -> None:
        """Run `ip -batch` in a host."""
        self.inside(side, lambda: run_batch("ip", lines, doing=f"setting host {side} up"))

    def inside(self, side: str, work: Callable[[], Result]) -> Result:
        """Return the result of `work()` inside a host."""
        return in_each_namespace(self._namespaces, [side], lambda _: work())[side]

    def udp(self, link: str) -> tuple[socket.socket, socket.socket]:
        """Return a sender in host a and a receiver in host b, whose datagrams cross `link`."""
        number = self.number[link]
        sender, receiver = (self._socket(side, number, socket.SOCK_DGRAM, UDP_PORT + number) for side in "ab")
        sender.connect((address("b", number), UDP_PORT + number))
        return sender, receiver

    def tcp(self, link: str, stream: int = 0) -> tuple[socket.socket, socket.socket]:
        """Return a connection across `link`, one of several: host a's end, which sends, and host b's."""
        number, port = self.number[link], TCP_PORT + stream
        sender, listener = (self._socket(side, number, socket.SOCK_STREAM, port) for side in "ab")
        with listener:
            listener.listen(1)
            sender.connect((address("b", number), port))
            receiver, _ = listener.accept()
        return sender, receiver

    def _socket(self, side: str, number: int, kind: socket.SocketKind, port: int) -> socket.socket:
        sock = self.inside(side, lambda: socket.socket(socket.AF_INET, kind))
        self._stack.enter_context(sock)
        if kind == socket.SOCK_DGRAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES)
        sock.bind((address(side, number), port))
        return sock


def _by_direction(
    parameters_of: LinkParameters | Mapping[LinkDirectionName, LinkParameters],
) -> Mapping[LinkDirectionName, LinkParameters]:
    return (
        dict.fromkeys(LinkDirectionName, parameters_of)
        if isinstance(parameters_of, LinkParameters)
        else parameters_of
    )


def address(side: str, number: int) -> str:
    """Return the address of a host's end of a link."""
    return f"10.0.{number}.{1 if side == 'a' else 2}"


def _mac(side: str, number: int) -> str:
    return f"02:00:00:00:{number:02x}:{1 if side == 'a' else 2:02x}"


def _new_namespace() -> int:
    """Return a descriptor of a fresh network namespace, which exists while a descriptor or process uses
    it.
    """
    opened: list[int] = []

    def unshare() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET) == 0:
            opened.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    thread = threading.Thread(target=unshare)
    thread.start()
    thread.join()
    return opened[0]
