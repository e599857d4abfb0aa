"""Machines for tests of shipping: a folder each, and real senders over connections that break on request.

Most run in a thread of the test, over a socket pair; `ProcessStream` is the program as it is on a machine.
"""

import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testbed.machines.shipping.limits import ShippingLimits
from testbed.machines.shipping.protocol import FrameReader
from testbed.machines.shipping.receiver import Listener, ship
from testbed.machines.shipping.result import ShippingResult
from testbed.machines.shipping.sender import Sender

QUICK = ShippingLimits(patience_s=0.0, retry_s=0.0)
"""Gives up at the first try that brings nothing: nothing in these tests comes back after having been gone."""


class ThreadStream:
    """A sender in a thread."""

    def __init__(self, folder: Path) -> None:
        self._socket, self._far = socket.socketpair()
        threading.Thread(target=self._serve, args=(folder,), daemon=True).start()

    def read(self, size: int) -> bytes:
        return self._socket.recv(size)

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def error_output(self) -> str:
        return ""

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()

    def _serve(self, folder: Path) -> None:
        with self._far:
            sender = Sender(folder, self._far.sendall, lambda: None)
            try:
                sender.serve(FrameReader(self._far.recv))
            except ConnectionError:
                return


class ProcessStream:
    """A sender as it is started on a machine, or another program in its place, over pipes."""

    def __init__(self, command: list[str], *, stdin: int = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )

    @classmethod
    def to(cls, folder: Path, *options: str, stdin: int = subprocess.PIPE) -> "ProcessStream":
        """Run the real program."""
        return cls(
            [sys.executable, "-m", "testbed.machines.shipping.sender", str(folder), *options], stdin=stdin
        )

    def read(self, size: int) -> bytes:
        assert self.process.stdout is not None
        data: bytes = self.process.stdout.read(size)
        return data

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def error_output(self) -> str:
        assert self.process.stderr is not None
        return self.process.communicate()[1].decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class CutStream:
    """A stream that breaks after this many bytes in both directions together."""

    inner: "ThreadStream | ProcessStream"
    left: int

    def read(self, size: int) -> bytes:
        data = self.inner.read(min(size, self._left()))
        self.left -= len(data)
        return data

    def write(self, data: bytes) -> None:
        part = data[: self._left()]
        self.inner.write(part)
        self.left -= len(part)
        if len(part) < len(data):
            self._left()

    def error_output(self) -> str:
        return ""

    def close(self) -> None:
        self.inner.close()

    def _left(self) -> int:
        if self.left <= 0:
            raise ConnectionResetError("the connection was cut")
        return self.left


@dataclass
class Machine:
    """A machine whose run folder is `folder`. cuts: the numbers of bytes after which its successive
    connections break; later ones hold, unless it `dies`.
    """

    name: str
    folder: Path
    cuts: Iterable[int] = ()
    dies: bool = False
    start: Callable[[Path], "ThreadStream | ProcessStream"] = ThreadStream
    _cuts: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self._cuts = iter(self.cuts)

    def open(self) -> "ThreadStream | ProcessStream | CutStream":
        cut = next(self._cuts, None)
        if cut is not None:
            return CutStream(self.start(self.folder), cut)
        if self.dies:
            raise ConnectionRefusedError("no listener")
        return self.start(self.folder)


def ship_all(
    run: Path, *machines: Machine, limits: ShippingLimits = QUICK, listener: Listener = lambda _: None
) -> dict[str, ShippingResult]:
    """Ship machines whose runs are over."""
    run.mkdir(exist_ok=True)
    return ship(machines, run, limits=limits, listener=listener, stop_following=lambda _: True)


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    """Write files below a folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def noise(size: int, seed: int = 0) -> bytes:
    """Return bytes that do not compress."""
    return random.Random(seed).randbytes(size)
