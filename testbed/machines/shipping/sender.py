"""The sender: lists a run folder and sends its bytes, on standard output, as requested on standard input.

    python -m testbed.machines.shipping.sender FOLDER --idle 60

It has no state and writes no files. By default it runs at the lowest priority, so that it does not disturb an
experiment. The kernel ends it (alarm(2)) if it receives no request for `--idle` seconds, also if it is
blocked in a write to a dead connection.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from experiments.files.whole_files import BEGUN
from testbed.machines.shipping.names import ShippingError, checked
from testbed.machines.shipping.partial_file import file_digest, tail_digest
from testbed.machines.shipping.protocol import (
    GREETING,
    TEXT_MAX,
    FileEntry,
    FrameReader,
    Hash,
    Kind,
    Read,
    Request,
    decode_request,
    encode,
    encode_data,
    encode_listing,
)

IDLE_S = 60
NICENESS = 19
PIECE_BYTES = 64 << 10
COPIED = re.compile(r"storage/[^/]+/image-copy(\.partial)?")
"""A copy of an image's files: `node.programs.image_view`."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of one folder's files.

    alive: called on each request and on progress of an answer. without: files of the folder that are not
    listed.
    """

    folder: Path
    write: Callable[[bytes], object]
    alive: Callable[[], object]
    without: Collection[str] = ()

    def serve(self, frames: FrameReader) -> None:
        """Greet and answer until the requests end.

        Raises ShippingError for an invalid request, and OSError if the folder cannot be read.
        """
        self.write(GREETING)
        while True:
            try:
                kind, body = frames.next()
            except EOFError:
                return
            self.alive()
            match kind:
                case Kind.LIST:
                    self.write(encode_listing(self._entries()))
                case Kind.READ:
                    self._answer(decode_request(Read, body), _read)
                case Kind.HASH:
                    self._answer(decode_request(Hash, body), self._hash)
                case _:
                    raise ShippingError(f"{kind} is not a request")

    def _entries(self) -> list[FileEntry]:
        """List all files; a run that has not begun yet has no folder and no files."""
        try:
            return [entry for entry in walk(self.folder) if entry.path not in self.without]
        except FileNotFoundError:
            return []

    def _hash(self, asked: Hash, file: FileIO) -> bytes | None:
        digest = file_digest(file, asked.size, self._busy)
        return None if digest is None else encode(Kind.DIGEST, digest)

    def _answer(self, asked: Request, read: Callable[[Request, FileIO], bytes | None]) -> None:
        """Answer with the result of `read` for the file if it is still the listed one."""
        try:
            with FileIO(self.folder / asked.path, opener=_open_no_link) as file:
                same = os.fstat(file.fileno()).st_ino == asked.identity
                answer = (read(asked, file) if same else None) or encode(Kind.CHANGED)
        except OSError as error:
            answer = encode(Kind.GONE, (error.strerror or type(error).__name__).encode())
        self.write(answer)

    def _busy(self) -> None:
        self.alive()
        self.write(encode(Kind.BUSY))


def _read(asked: Read, file: FileIO) -> bytes | None:
    if asked.tail and tail_digest(file, asked.offset) != asked.tail:
        return None
    file.seek(asked.offset)
    data = file.read(asked.length)
    return encode_data(data) if len(data) == asked.length else None


def walk(folder: Path, below: str = "") -> Iterator[FileEntry]:
    """Yield all regular files below a folder, without temporary files, names that cannot be encoded, and
    copies of images.

    Raises OSError if the folder itself cannot be read.
    """
    try:
        found = list(os.scandir(folder / below))
    except OSError:
        if not below:
            raise
        return  # removed meanwhile, or not readable: its files count as missing
    for item in found:
        path = f"{below}/{item.name}" if below else item.name
        try:
            if item.is_dir(follow_symlinks=False):
                yield from () if COPIED.fullmatch(path) else walk(folder, path)
            elif item.is_file(follow_symlinks=False) and not item.name.endswith(BEGUN):
                status = item.stat(follow_symlinks=False)
                yield FileEntry(checked(path), status.st_size, status.st_ino)
        except (FileNotFoundError, ShippingError):
            continue  # removed meanwhile, or a name that the receiver would refuse


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)


def main() -> int:
    """Serve the folder of the command line on standard input and output."""
    parser = argparse.ArgumentParser(prog="python -m testbed.machines.shipping.sender")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--idle", type=int, default=IDLE_S, help="seconds without a request until it ends")
    parser.add_argument("--nice", type=int, default=NICENESS, help="see nice(1)")
    parser.add_argument(
        "--without", action="append", default=[], metavar="FILE", help="do not list this file"
    )
    arguments = parser.parse_args()
    os.nice(arguments.nice)

    def alive() -> None:
        signal.alarm(arguments.idle)

    alive()
    sender = Sender(
        arguments.folder, lambda data: _write_all(data, alive), alive, frozenset(arguments.without)
    )
    try:
        sender.serve(FrameReader(lambda size: os.read(0, size)))
    except BrokenPipeError:
        return 0  # the receiver has disconnected
    except (OSError, ShippingError) as error:
        _write_all(encode(Kind.FAILED, str(error).encode(errors="replace")[:TEXT_MAX]))
        return 1
    return 0


def _write_all(data: bytes, alive: Callable[[], object] = lambda: None) -> None:
    """Write in pieces: on a slow network, each accepted piece calls `alive`."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view[:PIECE_BYTES]) :]
        alive()


if __name__ == "__main__":
    sys.exit(main())
