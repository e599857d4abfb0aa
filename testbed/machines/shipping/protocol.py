"""The shipping protocol: what the receiver requests, what the sender answers, and how both are framed.

A frame is a kind (1 byte), a length (4 bytes, big-endian) and a body. The sender begins with a greeting and
then answers requests in their order:

- LIST: the files of the run folder -> LISTING.
- READ: bytes of a listed file. The first READ of a file in a session has the digest of the receiver's bytes
  right before them, which detects a rewritten file -> DATA; CHANGED if it is a different file by now; GONE if
  it cannot be read.
- HASH: the SHA-256 of a file's first bytes -> DIGEST, CHANGED or GONE; sometimes BUSY before.

Either side treats its input as untrusted: an unknown kind, a length over the limit or an invalid field ends
the session. A request or a LISTING is JSON, which is validated by the annotations of its type below; listings
and data are compressed.
"""

import json
import struct
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Annotated, Any, NamedTuple, TypeVar

import zstandard
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from experiments.files.sanitize import sanitize
from testbed.machines.shipping.names import ShippingError, checked
from topologies.document import dotted

GREETING = b"\ncutset-shipping-2\n"
"""The sender's first bytes; the number is the protocol's version."""
CHUNK_BYTES_MAX = 1 << 20
"""The most bytes of a file in one request; longer chunks compress no better."""
BODY_BYTES_MAX = CHUNK_BYTES_MAX + (64 << 10)
"""Room for a chunk that does not compress, and its header."""
FILES_MAX = 20_000
LISTING_BYTES_MAX = 32 << 20
LEVEL = 1
"""The level of zstd. On captures of link-failure: 1.1 GB/s, 1/20 of the size; level 3 saves a fifth more."""
SIZE_MAX = 1 << 56
DIGEST_BYTES = 32  # SHA-256
TEXT_MAX = 400
HEAD = struct.Struct(">cI")


class Kind(Enum):
    """The kind of a frame."""

    LIST = b"l"  # requests
    READ = b"r"
    HASH = b"h"
    LISTING = b"L"  # answers, in the order of the requests
    DATA = b"D"
    DIGEST = b"H"
    CHANGED = b"C"
    GONE = b"G"
    BUSY = b"B"  # no answer yet, but alive
    FAILED = b"F"  # the sender cannot continue; the body is the reason


Path = Annotated[str, AfterValidator(checked)]
Size = Annotated[int, Field(ge=0, le=SIZE_MAX, strict=True)]
Identity = Annotated[int, Field(ge=0, le=1 << 64, strict=True)]
"""A file's inode, which changes if another file takes the name."""


class FileEntry(NamedTuple):
    """A file of the run folder."""

    path: Path
    size: Size
    identity: Identity


class Read(NamedTuple):
    """A request for a file's bytes from `offset` on.

    tail: the digest of the bytes before `offset`; empty for no comparison.
    """

    path: Path
    identity: Identity
    offset: Size
    length: Annotated[int, Field(ge=0, le=CHUNK_BYTES_MAX, strict=True)]
    tail: str = ""


class Hash(NamedTuple):
    """A request for the SHA-256 of a file's first `size` bytes."""

    path: Path
    identity: Identity
    size: Size


Request = TypeVar("Request", Read, Hash)
_KINDS = {Read: Kind.READ, Hash: Kind.HASH}
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in _KINDS}
_LISTING: TypeAdapter[list[FileEntry]] = TypeAdapter(Annotated[list[FileEntry], Field(max_length=FILES_MAX)])


def encode(kind: Kind, body: bytes = b"") -> bytes:
    """Return a frame as bytes."""
    assert len(body) <= BODY_BYTES_MAX
    return HEAD.pack(kind.value, len(body)) + body


def encode_request(request: Read | Hash) -> bytes:
    """Return a READ or HASH frame."""
    return encode(_KINDS[type(request)], json.dumps(request, separators=(",", ":")).encode())


def decode_request(kind: type[Request], body: bytes) -> Request:
    """Decode the body of a READ or HASH frame. Raises ShippingError."""
    request: Request = _validated(_ADAPTERS[kind], body, kind.__name__.lower())
    return request


def encode_listing(entries: Iterable[FileEntry]) -> bytes:
    """Return a LISTING frame. Raises ShippingError if there are too many files."""
    listed = sorted(entries)
    if len(listed) > FILES_MAX:
        raise ShippingError(f"more than {FILES_MAX} files")
    return encode(Kind.LISTING, _compressed(json.dumps(listed, separators=(",", ":")).encode()))


def decode_listing(body: bytes) -> list[FileEntry]:
    """Decode a listing. Raises ShippingError."""
    entries: list[FileEntry] = _validated(_LISTING, _decompressed(body, LISTING_BYTES_MAX), "listing")
    return entries


def encode_data(data: bytes) -> bytes:
    """Return a DATA frame."""
    return encode(Kind.DATA, _compressed(data))


def decode_data(body: bytes, length: int) -> bytes:
    """Decompress the answer to a READ of `length` bytes, never more. Raises ShippingError."""
    data = _decompressed(body, length)
    if len(data) != length:
        raise ShippingError(f"{len(data)} bytes of data; {length} were requested")
    return data


def decode_digest(body: bytes) -> bytes:
    """Decode a SHA-256. Raises ShippingError."""
    if len(body) != DIGEST_BYTES:
        raise ShippingError(f"a digest of {len(body)} bytes")
    return body


def decode_text(body: bytes) -> str:
    """Decode the text of GONE and FAILED, as one short line."""
    return sanitize(body[:TEXT_MAX].decode(errors="replace"))


class FrameReader:
    """A reader of frames from a stream of bytes.

    read: returns at most the given number of bytes, b"" at the end.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._held = bytearray()

    def greet(self) -> None:
        """Read the greeting. Raises EOFError, and ShippingError if it is a different one."""
        greeting = self._exactly(len(GREETING))
        if greeting != GREETING:
            raise ShippingError(f"its greeting is not that of a sender: {greeting!r}…")

    def next(self) -> tuple[Kind, bytes]:
        """Return the next frame. Raises EOFError if the stream ends (also within a frame), ShippingError."""
        code, length = HEAD.unpack(self._exactly(HEAD.size))
        try:
            kind = Kind(code)
        except ValueError:
            raise ShippingError(f"a frame of the unknown kind {code!r}") from None
        if length > BODY_BYTES_MAX:
            raise ShippingError(f"a frame of {length} bytes; the maximum is {BODY_BYTES_MAX}")
        return kind, self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        while len(self._held) < size:
            data = self._read(BODY_BYTES_MAX)
            if not data:
                raise EOFError("the connection ended")
            self._held += data
        taken = bytes(memoryview(self._held)[:size])
        del self._held[:size]
        return taken


def _validated(adapter: TypeAdapter[Any], body: bytes, what: str) -> Any:
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        where = ".".join(filter(None, [what, dotted(details["loc"])]))
        raise ShippingError(sanitize(f"{where}: {details['msg']}")) from None


def _compressed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(data)


def _decompressed(body: bytes, size_max: int) -> bytes:
    """Decompress a frame that declares at most `size_max` bytes. Raises ShippingError."""
    try:
        size = zstandard.frame_content_size(body)
        if not 0 <= size <= size_max:
            raise ShippingError(f"compressed data is not of at most {size_max} bytes")
        return zstandard.ZstdDecompressor().decompress(body, max_output_size=size_max)
    except zstandard.ZstdError as error:
        raise ShippingError(f"data cannot be decompressed: {error}") from None
