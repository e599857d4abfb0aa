"""The record of deliveries: what a client got and what a driver knows to be published, batch by batch.

A file is a 16-byte header and fixed records of 40 bytes, all big-endian. Batches keep the publisher's
boundaries, so that a driver's records and a client's match one to one: same stream, first sequence number,
count and CRC. A record that a crash cut short is left out by readers and cut off by a writer that goes on
with the file. `RECORD_FIELDS` also reads as a NumPy dtype; NumPy itself is not needed here.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

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
    ),  # the same over all of this writer's batches of this stream since its session began
    ("kind", ">u4"),  # RecordKind
    ("covered", ">u4"),  # sequence numbers from first_seq on; more than count where events were collected
)
_LETTERS = {">u4": "I", ">u8": "Q"}
RECORD = struct.Struct(">" + "".join(_LETTERS[form] for _, form in RECORD_FIELDS))


class RecordKind(IntEnum):
    """DELIVERED: by a client. PUBLISHED: acknowledged to a driver. SESSION: the process started (again).

    TOMBSTONE: a client got a placeholder for `count` collected events. SPARSE: it got `count` events, and
    placeholders for the others of the `covered` sequence numbers. EPOCH: the events that follow are of
    another epoch of the stream (`node.core.epochs`), whose first one comes after `first_seq`.

    SUBSCRIBING, SUBSCRIBED, UNSUBSCRIBING, UNSUBSCRIBED: a client asked for a stream, or that it ends, and
    was told that it is so. `first_seq` is the first event that it is to get, or not to get any more; 0 where
    it cannot know. Only of systems that deliver from a subscription on.
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
    """What a new file starts with."""
    return HEADER.pack(MAGIC, VERSION, RECORD.size)


def encode_record(record: DeliveryRecord) -> bytes:
    """One record's bytes."""
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
    """Length up to the end of the last whole record; 0 if the header is cut."""
    if file_bytes < HEADER.size:
        return 0
    return HEADER.size + (file_bytes - HEADER.size) // RECORD.size * RECORD.size


def check_file_header(data: bytes) -> None:
    """Raises ValueError if `data` does not start like a file of deliveries of this version."""
    if len(data) < HEADER.size:
        raise ValueError(f"{len(data)} bytes are no record of deliveries: its header has {HEADER.size}")
    magic, version, record_bytes = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION or record_bytes != RECORD.size:
        raise ValueError(
            f"not a record of deliveries of version {VERSION}: starts with {data[: HEADER.size]!r}"
        )


def read_records(data: bytes) -> tuple[list[DeliveryRecord], int]:
    """A file's whole records, and the number of torn bytes after them. Raises ValueError on a bad header."""
    check_file_header(data)
    end = whole_bytes(len(data))
    records = [
        DeliveryRecord(stream, count, first_seq, time_ns, batch_crc, running_crc, RecordKind(kind), covered)
        for stream, count, first_seq, time_ns, batch_crc, running_crc, kind, covered in RECORD.iter_unpack(
            memoryview(data)[HEADER.size : end]
        )
    ]
    return records, len(data) - end
