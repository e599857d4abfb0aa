"""Record of deliveries: the events that a client received, or that a driver knows to be published, by batch.

A file is a 16-byte header and fixed records of 40 bytes, all big-endian. Batches keep the publisher's
boundaries, so that a driver's records and a client's match one to one: same stream, first sequence number,
count and CRC. Readers skip a record that a crash cut short; a writer that continues the file truncates it.
`RECORD_FIELDS` also reads as a NumPy dtype; NumPy itself is not needed here.

`combined_crc` computes the CRC-32 of two parts from the CRC of each, so that bytes that count twice are read
once. Appending n zero bytes to a message multiplies its CRC, as a polynomial over GF(2), by x to the power
8n; the CRC of the second part is then added. This is `crc32_combine` of zlib, which Python does not offer.
Bits are reflected, as in all of CRC-32: the highest one is x to the power 0.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

MAGIC = b"CUTDELIV"
VERSION = 1
HEADER = struct.Struct(">8sII")
RECORD_FIELDS: Sequence[tuple[str, str]] = (
    ("stream", ">u4"),
    ("count", ">u4"),  # events
    ("first_seq", ">u8"),
    ("time_ns", ">u8"),  # CLOCK_REALTIME
    ("batch_crc", ">u4"),  # CRC-32 of the batch's event bytes, one after the other
    (
        "running_crc",
        ">u4",
    ),  # the same over all bytes that this writer published or received of this stream in its session
    ("kind", ">u4"),  # RecordKind
    ("covered", ">u4"),  # sequence numbers from first_seq on; more than count where events were collected
)
_LETTERS = {">u4": "I", ">u8": "Q"}
RECORD = struct.Struct(">" + "".join(_LETTERS[form] for _, form in RECORD_FIELDS))
POLYNOMIAL = 0xEDB88320
ONE = 1 << 31  # x to the power 0
LENGTH_BITS = 64  # of the longest part


class RecordKind(IntEnum):
    """Kinds of records. DELIVERED: received by a client. PUBLISHED: acknowledged to a driver, or sent by it,
    according to the contract. ACKNOWLEDGED: the system has what a driver sent and recorded as PUBLISHED
    before. SESSION: the process started; `first_seq` counts its earlier starts.

    TOMBSTONE: a client received a placeholder for `count` collected events. SPARSE: it received `count`
    events, and placeholders for the others of the `covered` sequence numbers. EPOCH: the following events
    belong to another epoch of the stream (`node.core.epochs`), whose first one comes after `first_seq`.

    SUBSCRIBING, SUBSCRIBED, UNSUBSCRIBING, UNSUBSCRIBED: a client requested a stream or its end, and received
    the confirmation. `first_seq` is the first event that it will receive, or no longer receive; 0 if it
    cannot know. Another SUBSCRIBED reports it as soon as it is known. Only for systems that deliver from a
    subscription on.
    """

    DELIVERED = 0
    PUBLISHED = 1
    SESSION = 2
    TOMBSTONE = 3
    SPARSE = 4
    EPOCH = 5
    SUBSCRIBING = 6
    SUBSCRIBED = 7
    UNSUBSCRIBING = 8
    UNSUBSCRIBED = 9
    ACKNOWLEDGED = 10


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One record; the fields are those of `RECORD_FIELDS`."""

    stream: int
    count: int
    first_seq: int
    time_ns: int
    batch_crc: int
    running_crc: int
    kind: RecordKind
    covered: int


def encode_file_header() -> bytes:
    """Return the header of a new file."""
    return HEADER.pack(MAGIC, VERSION, RECORD.size)


def encode_record(record: DeliveryRecord) -> bytes:
    """Encode a record as RECORD.size bytes."""
    return RECORD.pack(
        record.stream,
        record.count,
        record.first_seq,
        record.time_ns,
        record.batch_crc,
        record.running_crc,
        record.kind,
        record.covered,
    )


def whole_bytes(file_bytes: int) -> int:
    """Return the length up to the end of the last whole record; 0 if the header is cut."""
    if file_bytes < HEADER.size:
        return 0
    return HEADER.size + (file_bytes - HEADER.size) // RECORD.size * RECORD.size


def check_file_header(data: bytes) -> None:
    """Raise ValueError unless `data` starts like a file of deliveries of this version."""
    if len(data) < HEADER.size:
        raise ValueError(f"{len(data)} bytes are not a record of deliveries: its header has {HEADER.size}")
    magic, version, record_bytes = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION or record_bytes != RECORD.size:
        raise ValueError(
            f"not a record of deliveries of version {VERSION}: starts with {data[: HEADER.size]!r}"
        )


def read_records(data: bytes) -> tuple[list[DeliveryRecord], int]:
    """Return a file's whole records and the number of torn bytes after them. Raises ValueError on a bad
    header.
    """
    check_file_header(data)
    end = whole_bytes(len(data))
    records = [
        DeliveryRecord(stream, count, first_seq, time_ns, batch_crc, running_crc, RecordKind(kind), covered)
        for stream, count, first_seq, time_ns, batch_crc, running_crc, kind, covered in RECORD.iter_unpack(
            memoryview(data)[HEADER.size : end]
        )
    ]
    return records, len(data) - end


def combined_crc(first: int, second: int, second_bytes: int) -> int:
    """Return the CRC-32 of two parts, the second of `second_bytes`, given the CRC-32 of each."""
    return _product(_shift(second_bytes), first) ^ second


def _product(one: int, other: int) -> int:
    """Multiply two polynomials modulo CRC-32's."""
    product, power = 0, ONE
    while power:
        if one & power:
            product ^= other
        other = other >> 1 ^ POLYNOMIAL if other & 1 else other >> 1
        power >>= 1
    return product


def _make_squares() -> tuple[int, ...]:
    squares = [ONE >> 8]  # x to the power 8, 16, 32, …
    while len(squares) < LENGTH_BITS:
        squares.append(_product(squares[-1], squares[-1]))
    return tuple(squares)


_SQUARES = _make_squares()


@lru_cache(maxsize=256)
def _shift(length: int) -> int:
    """Return x to the power 8 * length."""
    power, at = ONE, 0
    while length:
        if length & 1:
            power = _product(_SQUARES[at], power)
        length, at = length >> 1, at + 1
    return power
