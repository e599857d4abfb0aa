"""The content of the shipping protocol's frames: three requests and their answers.

- LIST: what is new since the last LIST of this session -> LISTING, several if it is long.
- READ: bytes of a file in a LISTING. The first READ of a file has the digest of what the receiver has right
  before these bytes, so that a file that was rewritten is noticed at once -> DATA; CHANGED if it is another
  file by now; GONE if it cannot be read.
- HASH: the SHA-256 of a file's first bytes -> DIGEST, CHANGED or GONE; BUSY now and then before.

After CHANGED the next LISTING has the file again. Encoded and decoded here for both sides, and validated on
arrival.
"""

import json
from dataclasses import dataclass
from typing import Any

import zstandard

from testbed.machines.shipping.frames import CHUNK_BYTES_MAX, Kind, ShippingError, encode
from testbed.machines.shipping.names import checked
from testbed.sanitize import sanitize

LEVEL = 1
"""Of zstd. On captures of the main job: 1.1 GB/s and a 20th of the size; level 3 saves a fifth more."""
ENTRIES_MAX = 256
"""Names in one LISTING: even the longest then fit into a frame."""
SIZE_MAX = 1 << 56
DIGEST_BYTES = 32  # SHA-256
TEXT_MAX = 400


@dataclass(frozen=True, slots=True)
class Read:
    """A request for a file's bytes from `offset` on. tail: digest of those before it, empty if not to be
    compared.
    """

    path: str
    offset: int
    length: int
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Hash:
    """A request for the SHA-256 of a file's first `size` bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the run folder. identity: changes when another file takes the name (its inode)."""

    path: str
    size: int
    identity: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Files that are new or have changed, and names that are gone. more: another listing follows."""

    entries: tuple[Entry, ...]
    gone: tuple[str, ...]
    more: bool


def encode_read(read: Read) -> bytes:
    """A READ frame."""
    return _encode_json(Kind.READ, [read.path, read.offset, read.length, read.tail])


def decode_read(body: bytes) -> Read:
    """Decode a READ. Raises ShippingError."""
    path, offset, length, tail = _list(_json(body), 4)
    if not isinstance(tail, str):
        raise ShippingError("a digest is no text")
    return Read(checked(path), _number(offset, SIZE_MAX), _number(length, CHUNK_BYTES_MAX), tail)


def encode_hash(asked: Hash) -> bytes:
    """A HASH frame."""
    return _encode_json(Kind.HASH, [asked.path, asked.size])


def decode_hash(body: bytes) -> Hash:
    """Decode a HASH. Raises ShippingError."""
    path, size = _list(_json(body), 2)
    return Hash(checked(path), _number(size, SIZE_MAX))


def encode_listing(listing: Listing) -> bytes:
    """A LISTING frame; at most ENTRIES_MAX names in all."""
    entries = [[entry.path, entry.size, entry.identity] for entry in listing.entries]
    return _encode_json(Kind.LISTING, [entries, list(listing.gone), listing.more])


def decode_listing(body: bytes) -> Listing:
    """Decode a LISTING. Raises ShippingError."""
    entries, gone, more = _list(_json(body), 3)
    if not isinstance(entries, list) or not isinstance(gone, list) or len(entries) + len(gone) > ENTRIES_MAX:
        raise ShippingError("a listing that is none, or too long")
    return Listing(tuple(_entry(entry) for entry in entries), tuple(map(checked, gone)), bool(more))


class Packer:
    """Compresses DATA."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)

    def data(self, data: bytes) -> bytes:
        """A DATA frame."""
        return encode(Kind.DATA, self._zstd.compress(data))


class Unpacker:
    """Decompresses DATA, never to more than was requested."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdDecompressor()

    def data(self, body: bytes, length: int) -> bytes:
        """The answer to a READ of `length` bytes. Raises ShippingError."""
        try:
            if zstandard.frame_content_size(body) != length:
                raise ShippingError(f"data that is not the {length} bytes that were asked for")
            data = self._zstd.decompress(body, max_output_size=length)
        except zstandard.ZstdError as error:
            raise ShippingError(f"data that cannot be unpacked: {error}") from None
        if len(data) != length:
            raise ShippingError(f"{len(data)} bytes of data; {length} were asked for")
        return data


def decode_digest(body: bytes) -> bytes:
    """Decode a SHA-256. Raises ShippingError."""
    if len(body) != DIGEST_BYTES:
        raise ShippingError(f"a digest of {len(body)} bytes")
    return body


def decode_text(body: bytes) -> str:
    """The text of GONE and FAILED, as one short line."""
    return sanitize(body[:TEXT_MAX].decode(errors="replace"))


def _entry(entry: Any) -> Entry:
    path, size, identity = _list(entry, 3)
    return Entry(checked(path), _number(size, SIZE_MAX), _number(identity, 1 << 64))


def _encode_json(kind: Kind, content: Any) -> bytes:
    return encode(kind, json.dumps(content, separators=(",", ":")).encode())


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise ShippingError("a frame that should be JSON is none") from None


def _list(content: Any, length: int) -> list[Any]:
    if not isinstance(content, list) or len(content) != length:
        raise ShippingError(f"a list of {length} is something else")
    return content


def _number(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ShippingError(f"{value!r:.40} is no number from 0 to {most}")
    return value
