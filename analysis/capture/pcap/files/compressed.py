"""Compressed captures: each is decompressed once, into a file that is then read like any other."""

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

GROWTH_MAX = 4_000  # times the compressed size; all-zero payload in large packets reaches several hundred
SIZE_ALWAYS_ALLOWED = 1 << 30  # bytes
DISK_RESERVE_BYTES = 512 << 20
WINDOW_BYTES_MAX = 128 << 20  # Zstandard's window with `zstd --long`
_INPUT_BYTES = 4_096  # read at once; they expand to at most 128 MB, 128 KiB per 4 bytes
_CHECK_BYTES = 64 << 20  # written between two checks of the disk


class _Engine(Protocol):
    """Decompresses one gzip member or Zstandard frame."""

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
    """Return the factory of engines for a file with this beginning; None if it is not compressed."""
    if first[:2] == b"\x1f\x8b":
        return _gzip
    # A frame, or a skippable frame (RFC 8878, section 3.1).
    zstd = first[:4] == b"\x28\xb5\x2f\xfd" or (
        first[:1] != b"" and first[0] >> 4 == 5 and first[1:4] == b"\x2a\x4d\x18"
    )
    return _zstd if zstd else None


@dataclass(frozen=True, slots=True)
class _SourceStamp:
    """Identifies the compressed file of a decompressed one."""

    file: str
    file_bytes: int
    file_mtime_ns: int
    problem: str | None


def capture_name(capture: Path) -> str:
    """Return a capture's name in tables: its file name without suffixes of format and compression."""
    return Path(without_compression(capture.name)).stem


def readable(capture: Path) -> Path:
    """Return the file with a capture's records: itself or, if it is compressed, the output of `unpack`."""
    return capture if _engine(_first(capture)) is None else _place(capture)


def unpack(capture: Path) -> Path:
    """Decompress a capture, if that is necessary and was not done yet, and return the readable file.

    Raises CaptureError if nothing can be decompressed, the disk lacks space, or the result is implausibly
    large.
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
            _note(place).unlink(missing_ok=True)  # a stale stamp must not describe the new file
        write_whole(_note(place), json.dumps(asdict(note)), sync=False)
    except OSError as error:
        raise CaptureError(f"{capture.name}: cannot be unpacked to {place}: {error.strerror}") from error
    return place


def unpacking_problem(path: Path) -> str | None:
    """Return the problem of the compressed file that this file was decompressed from, if any."""
    found = _read_note(path)
    return None if found is None else found.problem


def _copy(source: IO[bytes], target: IO[bytes], engine: Callable[[], _Engine], capture: Path) -> str | None:
    """Decompress as far as possible, and return the problem with the rest, if any."""
    allowed = max(SIZE_ALWAYS_ALLOWED, os.fstat(source.fileno()).st_size * GROWTH_MAX)
    written, checked = 0, -_CHECK_BYTES
    beginning = b""  # until it is long enough to recognise the format
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
                _check_disk(_place(capture).parent, len(piece), capture)
                checked = written
            target.write(piece)
            written += len(piece)
            if written > allowed:
                raise CaptureError(f"{capture.name}: unpacks to more than {allowed:,} bytes, the limit")
    except (zlib.error, zstandard.ZstdError, EOFError) as error:
        if written == 0:
            raise CaptureError(f"{capture.name}: cannot be decompressed: {error}") from error
        return f"unpacked to byte {written} only: {error}"
    if written == 0:
        raise CaptureError(f"{capture.name}: unpacks to {len(beginning)} bytes, too few for a capture")
    return None


def _pieces(source: IO[bytes], engine: Callable[[], _Engine]) -> Iterator[bytes]:
    """Decompress piece by piece. Raises EOFError if the file is truncated, and the libraries' errors."""
    current, begun = engine(), False
    rest = b""
    while data := rest or source.read(_INPUT_BYTES):
        rest = b""
        if not begun and engine is _gzip and not data.strip(b"\0"):
            continue  # trailing zeros may pad a tape block: gzip(1)
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
            f"{DISK_RESERVE_BYTES >> 20} MiB must remain free"
        )


def _first(capture: Path) -> bytes:
    if not capture.is_file():
        return b""
    with suppress(OSError), capture.open("rb") as file:  # the error appears again when the file is read
        return file.read(4)
    return b""


def _place(capture: Path) -> Path:
    run = RunDirectory(capture.parent.parent)
    of_run = capture.parent == run.captures and run.run_json.is_file()
    folder = run.unpacked if of_run else capture.parent / run.unpacked.name
    return folder / without_compression(capture.name)


def without_compression(name: str) -> str:
    """Return a capture's file name without suffixes of compression."""
    return name.removesuffix(".gz").removesuffix(".zst")


def _note(place: Path) -> Path:
    return place.with_name(place.name + ".origin")


def _read_note(place: Path, wanted: _SourceStamp | None = None) -> _SourceStamp | None:
    """Return a decompressed file's stamp, if there is one and it identifies the same file as `wanted`."""
    with suppress(OSError, ValueError, TypeError):
        found = _SourceStamp(**json.loads(_note(place).read_text()))
        same = wanted is None or (found.file, found.file_bytes, found.file_mtime_ns) == (
            wanted.file,
            wanted.file_bytes,
            wanted.file_mtime_ns,
        )
        return found if same else None
    return None
