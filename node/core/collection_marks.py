"""Collection marks: which of a driver's events collect others, and the keys of its events. A checker needs
both to decide whether a collected event may be missing.

The marks are in a file beside the driver's record of deliveries: one mark for each acknowledged batch that
collects events or has keys. A mark is written before its batch's record. It consists of a fixed head,
big-endian, and, if it has keys, 64 bits for each event: the key itself, or a hash of a longer key.
"""

import struct
from collections.abc import Iterable
from hashlib import blake2b

HEAD = struct.Struct(">IIQI")  # stream, count, first_seq, flags
COLLECTS, HAS_KEYS = 1, 2
KEY_BYTES = 8
MARKS_SUFFIX = ".collection"  # replaces the suffix of the record of deliveries


def encode_mark(stream: int, first_seq: int, count: int, *, collects: bool, keys: bytes = b"") -> bytes:
    """Encode one batch's mark. keys: none, or KEY_BYTES for each event."""
    flags = COLLECTS * collects | HAS_KEYS * bool(keys)
    return HEAD.pack(stream, count, first_seq, flags) + keys


def keys_of(events: Iterable[bytes], key_bytes: int) -> bytes:
    """Return the keys at the start of these events, as marks contain them."""
    if key_bytes <= KEY_BYTES:
        return b"".join([event[:key_bytes].rjust(KEY_BYTES, b"\0") for event in events])
    return b"".join([blake2b(event[:key_bytes], digest_size=KEY_BYTES).digest() for event in events])
