"""Machines for tests of shipping: a folder, and real senders over pipes that break where a test says."""

import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from testbed.shipping.lane import Listener
from testbed.shipping.limits import Limits
from testbed.shipping.receiver import ship
from testbed.shipping.result import Progress, Shipped

QUICK = Limits(patience_s=0.5)
"""Gives up soon: nothing in these tests comes back after having been gone."""


def sender_command(folder: Path, *options: str) -> list[str]:
    """As it is started on a machine."""
    return [sys.executable, "-m", "testbed.shipping.sender", str(folder), *options]


class PipeStream:
    """A real sender, and the pipes to it. The connection breaks after so many bytes, read and written."""

    def __init__(self, command: list[str], cut_after: int | None = None) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self._left = cut_after
        self.read_bytes = 0

    @property
    def pid(self) -> int:
        """Of the sender."""
        return self._process.pid

    def read(self, size: int) -> bytes:
        """See Stream."""
        assert self._process.stdout is not None
        data = self._process.stdout.read(self._may(size))
        self.read_bytes += len(data)
        self._spend(len(data))
        return data

    def write(self, data: bytes) -> None:
        """See Stream."""
        assert self._process.stdin is not None
        part = data[: self._may(len(data))]
        self._process.stdin.write(part)
        self._spend(len(part))
        if len(part) < len(data):
            raise ConnectionResetError("cut while writing")

    def said(self) -> str:
        """See Stream."""
        assert self._process.stderr is not None
        if self._process.poll() is None:
            return ""
        return self._process.stderr.read().decode()

    def close(self) -> None:
        """See Stream."""
        self._process.kill()
        self._process.wait()

    def _may(self, size: int) -> int:
        if self._left is not None and self._left <= 0:
            self.close()
            raise ConnectionResetError("cut")
        return size if self._left is None else min(size, self._left)

    def _spend(self, size: int) -> None:
        if self._left is not None:
            self._left -= size


@dataclass
class PipeMachine:
    """A machine whose folder is `folder`. cuts: after how many bytes each connection breaks, one by one;
    then they hold. dies: after the cuts it cannot be reached any more.
    """

    name: str
    folder: Path
    cuts: Iterator[int] = field(default_factory=lambda: iter(()))
    dies: bool = False
    command: list[str] | None = None
    streams: list[PipeStream] = field(default_factory=list)

    def open(self) -> PipeStream:
        """See Source."""
        cut = next(self.cuts, None)
        if cut is None and self.dies:
            raise ConnectionRefusedError("nobody is there")
        stream = PipeStream(self.command or sender_command(self.folder), cut)
        self.streams.append(stream)
        return stream


def shipped_over(
    machines: list[PipeMachine],
    run: Path,
    *,
    limits: Limits = QUICK,
    listener: Listener = lambda _: None,
) -> dict[str, Shipped]:
    """Ship machines whose runs are over."""
    run.mkdir(exist_ok=True)
    return ship(
        machines,
        run,
        limits=limits,
        listener=listener,
        stop_following=lambda _: True,
        randomness=random.Random(1),
    )


@dataclass
class Told:
    """A listener that keeps what it was told."""

    of: list[Progress] = field(default_factory=list)

    def __call__(self, progress: Progress) -> None:
        """See Listener."""
        self.of.append(progress)


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    """Files below a folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def read_files(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
