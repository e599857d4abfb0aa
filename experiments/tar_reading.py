"""The members of a tar stream that may come from anybody, one after another: strict, and in little memory.

Only what `experiments.packing` writes is known: plain files and folders, and pax headers of a few keys (POSIX
"pax Interchange Format"). Python's tarfile knows far more: it reads headers of any size into memory, follows
them to any depth, and keeps all members. Of it only the layout of a header block is used.
"""

import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Final

BLOCK_BYTES: Final = tarfile.BLOCKSIZE
PAX_BYTES_MAX: Final = 64 << 10
AFTER_END_BYTES_MAX: Final = 1 << 20
"""Of zeros: tar fills up its last record."""
_READ_BYTES: Final = 1 << 20
_FILES: Final = (tarfile.REGTYPE, tarfile.AREGTYPE)
_NAMING: Final = "path"
_SIZING: Final = "size"
_IGNORED: Final = frozenset({"mtime", "atime", "ctime"})


@dataclass(frozen=True, slots=True)
class Member:
    """A file or a folder. Its content is to be read before the next member is asked for."""

    name: str
    folder: bool
    size: int  # of the content, in bytes
    content: "Content"


class Content:
    """The next so many bytes of a stream."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes, b"" at the end. Raises tarfile.ReadError if the stream ends before."""
        wanted = self._left if size < 0 else min(size, self._left)
        found = self._stream.read(wanted) if wanted else b""
        if wanted and not found:
            raise tarfile.ReadError("it ends too early")
        self._left -= len(found)
        return found


class TarReader:
    """Reads a stream to its end. `common` are the global header's entries, as far as they were read."""

    def __init__(self, stream: IO[bytes], common: frozenset[str]) -> None:
        """common: the keys that a global header may have."""
        self._stream = stream
        self._known = common
        self.common: dict[str, str] = {}

    def members(self) -> Iterator[Member]:
        """All of them. Raises tarfile.TarError and ValueError for what is damaged, or not as ours are."""
        own: Mapping[str, str] = {}
        while (header := self._header()) is not None:
            if header.type == tarfile.XGLTYPE:
                self.common |= self._entries(header, self._known)
            elif header.type == tarfile.XHDTYPE:
                own = self._entries(header, {_NAMING, _SIZING, *_IGNORED})
            elif header.type in _FILES or header.type == tarfile.DIRTYPE:
                folder = header.type == tarfile.DIRTYPE
                size = 0 if folder else int(own.get(_SIZING, header.size))
                content = self._content(size)
                yield Member(own.get(_NAMING, header.name), folder, size, content)
                self._skip(content, size)
                own = {}
            else:
                raise tarfile.ReadError(f"it holds {header.name!r}, which is neither a file nor a folder")
        self._drain()

    def _header(self) -> tarfile.TarInfo | None:
        block = self._stream.read(BLOCK_BYTES)
        if not block.strip(b"\0"):
            return None
        return tarfile.TarInfo.frombuf(block, "utf-8", "strict")

    def _entries(self, header: tarfile.TarInfo, known: set[str] | frozenset[str]) -> dict[str, str]:
        """The records of a pax header, each as `<its length> <key>=<value>` and a line's end."""
        if not 0 <= header.size <= PAX_BYTES_MAX:
            raise tarfile.ReadError(f"it has a header of {header.size >> 10} KiB")
        content = self._content(header.size)
        rest, entries = b"", dict[str, str]()
        while part := content.read():
            rest += part
        self._skip(content, header.size)
        while rest:
            length, _, _ = rest.partition(b" ")
            record, rest = rest[: int(length)], rest[int(length) :]
            key, equals, value = record[len(length) + 1 : -1].decode().partition("=")
            if not equals or not record.endswith(b"\n") or key not in known:
                raise tarfile.ReadError(f"it has a header with {key[:40]!r}, which none of ours has")
            entries[key] = value
        return entries

    def _content(self, size: int) -> Content:
        if size < 0:
            raise tarfile.ReadError("it has a file of negative size")
        return Content(self._stream, size)

    def _skip(self, content: Content, size: int) -> None:
        """What was not read of a content, and what fills up its last block."""
        while content.read(_READ_BYTES):
            pass
        fill = Content(self._stream, -size % BLOCK_BYTES)
        while fill.read():
            pass

    def _drain(self) -> None:
        """To the very end: there stands the checksum of a compressed stream."""
        left = AFTER_END_BYTES_MAX
        while found := self._stream.read(_READ_BYTES):
            left -= len(found)
            if left < 0 or found.strip(b"\0"):
                raise tarfile.ReadError("it goes on after its end")
