"""Which of a driver's events collect others, and the keys of its events: what a checker needs to say whether
a collected event may be gone.

A file beside the driver's record of deliveries, as many marks one after the other as it had acknowledged
batches that are worth one; a mark is written before its batch's record. A mark is a fixed head, big-endian,
and, if it has keys, one of 64 bits for each event: the key itself, or a hash of one that is longer.
"""

import struct
from collections.abc import Iterable
from hashlib import blake2b

HEAD = struct.Struct(">IIQI")  # stream, count, first_seq, flags
COLLECTS, HAS_KEYS = 1, 2
KEY_BYTES = 8
MARKS_SUFFIX = ".collection"  # of the file, in the place of that of the record of deliveries


def encode_mark(stream: int, first_seq: int, count: int, *, collects: bool, keys: bytes = b"") -> bytes:
    """One batch's mark. keys: none, or KEY_BYTES for each event."""
    flags = COLLECTS * collects | HAS_KEYS * bool(keys)
    return HEAD.pack(stream, count, first_seq, flags) + keys


def keys_of(events: Iterable[bytes], key_bytes: int) -> bytes:
    """The keys with which these events begin, as marks have them."""
    if key_bytes <= KEY_BYTES:
        return b"".join([event[:key_bytes].rjust(KEY_BYTES, b"\0") for event in events])
    return b"".join([blake2b(event[:key_bytes], digest_size=KEY_BYTES).digest() for event in events])
