"""The content of the shipping protocol's frames: three requests and their answers.

- LIST: changes since the last LIST of this session -> LISTING, several if it is long.
- READ: bytes of a file in a LISTING. The first READ of a file has the digest of the receiver's bytes right
  before them, which detects a rewritten file -> DATA; CHANGED if it is a different file by now; GONE if it
  cannot be read.
- HASH: the SHA-256 of a file's first bytes -> DIGEST, CHANGED or GONE; sometimes BUSY before.

After CHANGED the next LISTING has the file again. A request or a LISTING is a JSON list of the fields of its
type below, which are validated on arrival according to their annotations.
"""

import json
from typing import Annotated, Any, NamedTuple, TypeVar

import zstandard
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from experiments.files.sanitize import sanitize
from testbed.machines.shipping.frames import CHUNK_BYTES_MAX, Kind, ShippingError, encode
from testbed.machines.shipping.names import checked
from topologies.document import dotted

LEVEL = 1
"""The level of zstd. On captures of link-failure: 1.1 GB/s, 1/20 of the size; level 3 saves a fifth more."""
ENTRIES_MAX = 256
"""Names in one LISTING: a frame has room for this number of the longest names."""
SIZE_MAX = 1 << 56
DIGEST_BYTES = 32  # SHA-256
TEXT_MAX = 400


Path = Annotated[str, AfterValidator(checked)]
Size = Annotated[int, Field(ge=0, le=SIZE_MAX, strict=True)]


class Read(NamedTuple):
    """A request for a file's bytes from `offset` on.

    tail: the digest of the bytes before `offset`; empty for no comparison.
    """

    path: Path
    offset: Size
    length: Annotated[int, Field(ge=0, le=CHUNK_BYTES_MAX, strict=True)]
    tail: str = ""


class Hash(NamedTuple):
    """A request for the SHA-256 of a file's first `size` bytes."""

    path: Path
    size: Size


class FileEntry(NamedTuple):
    """A file of the run folder. identity: its inode, which changes if another file takes the name."""

    path: Path
    size: Size
    identity: Annotated[int, Field(ge=0, le=1 << 64, strict=True)]


class Listing(NamedTuple):
    """New and changed files, and removed names; at most ENTRIES_MAX together. more: another one follows."""

    entries: Annotated[tuple[FileEntry, ...], Field(max_length=ENTRIES_MAX)]
    gone: Annotated[tuple[Path, ...], Field(max_length=ENTRIES_MAX)]
    more: bool


Message = TypeVar("Message", Read, Hash, Listing)
_KINDS = {Read: Kind.READ, Hash: Kind.HASH, Listing: Kind.LISTING}
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in _KINDS}


def encode_message(message: Read | Hash | Listing) -> bytes:
    """Return a READ, HASH or LISTING frame."""
    return encode(_KINDS[type(message)], json.dumps(message, separators=(",", ":")).encode())


def decode_message(kind: type[Message], body: bytes) -> Message:
    """Decode the body of a READ, HASH or LISTING frame. Raises ShippingError."""
    try:
        message: Message = _ADAPTERS[kind].validate_json(body)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        where = ".".join(filter(None, [kind.__name__.lower(), dotted(details["loc"])]))
        raise ShippingError(sanitize(f"{where}: {details['msg']}")) from None
    if isinstance(message, Listing) and len(message.entries) + len(message.gone) > ENTRIES_MAX:
        raise ShippingError(f"a listing of more than {ENTRIES_MAX} names")
    return message


def encode_data(data: bytes) -> bytes:
    """Return a DATA frame, compressed."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)
    return encode(Kind.DATA, compressor.compress(data))


def decode_data(body: bytes, length: int) -> bytes:
    """Decompress the answer to a READ of `length` bytes, never more. Raises ShippingError."""
    try:
        if zstandard.frame_content_size(body) != length:
            raise ShippingError(f"data is not the {length} bytes that were requested")
        data = zstandard.ZstdDecompressor().decompress(body, max_output_size=length)
    except zstandard.ZstdError as error:
        raise ShippingError(f"data cannot be decompressed: {error}") from None
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
