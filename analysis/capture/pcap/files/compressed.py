"""Compressed captures: decompressed once, into a file that is then read as any other."""

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Protocol

import zstandard

from analysis.capture.pcap.files.format import begins_pcap
from analysis.capture.pcap.files.pcapng import MAGIC
from analysis.errors import CaptureError
from experiments.files.whole_files import replacing, write_whole
from experiments.records.rundir import RunDirectory

GROWTH_MAX = 4_000  # times the compressed size; all-zero payload in large packets reaches some hundreds
SIZE_ALWAYS_ALLOWED = 1 << 30  # bytes
DISK_RESERVE_BYTES = 512 << 20
WINDOW_BYTES_MAX = 128 << 20  # of Zstandard: `zstd --long` needs so much, and nothing needs more
_INPUT_BYTES = 4_096  # at once: no more than 128 MB come of that, 128 KiB of every 4 bytes
_CHECK_BYTES = 64 << 20  # between two looks at the disk


class _Engine(Protocol):
    """Unpacks one member or frame."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> _Engine:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)  # 16: with gzip's header


def _zstd() -> _Engine:
    return zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX).decompressobj()


def _engine(first: bytes) -> Callable[[], _Engine] | None:
    """What unpacks a file that begins so, if it is compressed."""
    if first[:2] == b"\x1f\x8b":
        return _gzip
    # A frame, or one to be skipped (RFC 8878, section 3.1).
    zstd = first[:4] == b"\x28\xb5\x2f\xfd" or (
        first[:1] != b"" and first[0] >> 4 == 5 and first[1:4] == b"\x2a\x4d\x18"
    )
    return _zstd if zstd else None


@dataclass(frozen=True, slots=True)
class _SourceStamp:
    """Identifies the file that a decompressed file was made from."""

    file: str
    file_bytes: int
    file_mtime_ns: int
    problem: str | None


def capture_name(capture: Path) -> str:
    """The name of a capture in tables: its file's name without suffixes of format and compression."""
    return Path(without_compression(capture.name)).stem


def readable(capture: Path) -> Path:
    """Where the records of a capture can be read: itself or, if it is compressed, where `unpack` puts it."""
    return capture if _engine(_first(capture)) is None else _place(capture)


def unpack(capture: Path) -> Path:
    """Make a compressed capture readable, if that was not done yet, and say where. Others stay as they are.

    Raises CaptureError if nothing can be had of it, or if the disk or any sense of proportion forbids it.
    """
    engine = _engine(_first(capture))
    if engine is None:
        return capture
    place = _place(capture)
    status = capture.stat()
    if place.exists() and _read_note(
        place, _SourceStamp(capture.name, status.st_size, status.st_mtime_ns, None)
    ):
        return place
    if place.parent.is_symlink():
        raise CaptureError(f"{capture.name}: cannot be unpacked to {place.parent}, which is a symbolic link")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with capture.open("rb") as source, replacing(place, sync=False) as target:
            problem = _copy(source, target, engine, capture)
            note = _SourceStamp(capture.name, status.st_size, status.st_mtime_ns, problem)
            _note(place).unlink(missing_ok=True)  # of another file, which would be taken for this one's
        write_whole(_note(place), json.dumps(asdict(note)), sync=False)
    except OSError as error:
        raise CaptureError(f"{capture.name}: cannot be unpacked to {place}: {error.strerror}") from error
    return place


def unpacking_problem(path: Path) -> str | None:
    """What was wrong with the compressed file that this was unpacked from, if anything was."""
    found = _read_note(path)
    return None if found is None else found.problem


def _copy(source: IO[bytes], target: IO[bytes], engine: Callable[[], _Engine], capture: Path) -> str | None:
    """Unpack as far as possible. Returns what is wrong with the rest."""
    allowed = max(SIZE_ALWAYS_ALLOWED, os.fstat(source.fileno()).st_size * GROWTH_MAX)
    written, checked = 0, -_CHECK_BYTES
    beginning = b""  # until it is long enough to tell what it is of
    try:
        for unpacked in _pieces(source, engine):
            piece = beginning + unpacked
            if written == 0 and len(piece) < len(MAGIC):
                beginning = piece
                continue
            beginning = b""
            if written == 0 and not (begins_pcap(piece) or piece[: len(MAGIC)] == MAGIC):
                raise CaptureError(f"{capture.name}: holds neither a pcap nor a pcapng file")
            if written - checked >= _CHECK_BYTES or len(piece) >= _CHECK_BYTES:
                _check_disk(Path(target.name).parent, len(piece), capture)
                checked = written
            target.write(piece)
            written += len(piece)
            if written > allowed:
                raise CaptureError(f"{capture.name}: unpacks to more than {allowed:,} bytes; no capture does")
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        if written == 0:
            raise CaptureError(f"{capture.name}: nothing of it can be unpacked: {error}") from error
        return f"unpacked to byte {written} only: {error}"
    if written == 0:
        raise CaptureError(f"{capture.name}: {len(beginning)} bytes when unpacked are no capture")
    return None


def _pieces(source: IO[bytes], engine: Callable[[], _Engine]) -> Iterator[bytes]:
    """Unpack bit by bit. Raises EOFError where the file is cut off, and the libraries' errors."""
    current, begun = engine(), False
    rest = b""
    while data := rest or source.read(_INPUT_BYTES):
        rest = b""
        if not begun and engine is _gzip and not data.strip(b"\0"):
            continue  # zeros may fill up a tape's block: gzip(1)
        begun = True
        yield current.decompress(data)
        if current.eof:
            rest, current, begun = current.unused_data, engine(), False
    if begun:
        raise EOFError("the compressed file is cut off")


def _check_disk(folder: Path, wanted: int, capture: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < DISK_RESERVE_BYTES + _CHECK_BYTES + wanted:
        raise CaptureError(
            f"{capture.name}: no room to unpack it in {folder}: {free >> 20} MiB are free, "
            f"of which {DISK_RESERVE_BYTES >> 20} are to stay so"
        )


def _first(capture: Path) -> bytes:
    if not capture.is_file():
        return b""
    with suppress(OSError), capture.open("rb") as file:  # who reads it will say what is wrong
        return file.read(4)
    return b""


def _place(capture: Path) -> Path:
    run = RunDirectory(capture.parent.parent)
    of_run = capture.parent == run.captures and run.run_json.is_file()
    folder = run.unpacked if of_run else capture.parent / run.unpacked.name
    return folder / without_compression(capture.name)


def without_compression(name: str) -> str:
    """A capture's name when it is plain."""
    return name.removesuffix(".gz").removesuffix(".zst")


def _note(place: Path) -> Path:
    return place.with_name(place.name + ".origin")


def _read_note(place: Path, wanted: _SourceStamp | None = None) -> _SourceStamp | None:
    """The note beside an unpacked file, if there is one and it tells of the same file as `wanted`."""
    with suppress(OSError, ValueError, TypeError):
        found = _SourceStamp(**json.loads(_note(place).read_text()))
        same = wanted is None or (found.file, found.file_bytes, found.file_mtime_ns) == (
            wanted.file,
            wanted.file_bytes,
            wanted.file_mtime_ns,
        )
        return found if same else None
    return None
