"""The tables that come straight from captures: one definition of each, for NumPy, Arrow, Parquet and Spark.

Each schema is an Arrow schema; `spark_schema` derives Spark's from it, so the two cannot differ (Spark
insists on the same order, types and nullability from Python). All times are CLOCK_REALTIME nanoseconds as
bigint, since Spark has no nanosecond time stamp. Tables computed from these (events, timelines) have
schemas of their own.
"""

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def _schema(*columns: tuple[str, pa.DataType, bool]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable) for name, kind, nullable in columns])


_INT, _BIGINT, _STRING, _BOOLEAN = pa.int32(), pa.int64(), pa.string(), pa.bool_()

# One row per record of a capture. Where a header is missing or cut off, its columns are 0, and `proto` is -1
# where no IP header could be read. Payload stays in the capture: `payload_length` bytes (of which only
# `length - payload_offset` were captured) at `offset + payload_offset`.
PACKETS = _schema(
    ("capture", _STRING, False),  # file name without suffix
    ("t_ns", _BIGINT, False),
    ("offset", _BIGINT, False),  # of the captured bytes in the file
    ("length", _INT, False),  # captured bytes
    ("wire_length", _INT, False),  # bytes on the wire
    ("src_hi", _BIGINT, False),  # IPv6 addresses as two big-endian halves; IPv4: hi = 0, lo = the address
    ("src_lo", _BIGINT, False),
    ("dst_hi", _BIGINT, False),
    ("dst_lo", _BIGINT, False),
    ("sport", _INT, False),
    ("dport", _INT, False),
    ("proto", _INT, False),  # 6 TCP, 17 UDP, …
    ("seq", _BIGINT, False),
    ("ack", _BIGINT, False),
    ("flags", _INT, False),  # TCP flags, FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16
    ("ip_id", _INT, False),
    ("payload_offset", _INT, False),  # within the record's data
    ("payload_length", _INT, False),  # from the IP length: padding is not payload, cut-off bytes are
)

# The columns that name one TCP direction in one capture.
_STREAM = (
    ("capture", _STRING, False),
    ("host", _STRING, False),  # whose capture it is
    ("direction", _STRING, False),  # 'in' or 'out' of that host
    ("src", _STRING, False),
    ("sport", _INT, False),
    ("dst", _STRING, False),
    ("dport", _INT, False),
    ("connection", _INT, False),  # counts the connections that used the same ports, from 0
)

# What is known of a message from its own bytes: the columns that a message has wherever it was seen.
_CONTENT = (
    ("type", _STRING, False),  # of the inmost message, whose the other columns are
    ("within", _STRING, True),  # the types of the messages that it came in, the outermost first
    (
        "source",
        _BIGINT,
        True,
    ),  # whose it is, and for whom, where others pass it on: IPv4 addresses as numbers
    ("target", _BIGINT, True),
    ("stream", _INT, True),
    ("kind", _INT, True),
    ("first_seq", _BIGINT, True),
    ("count", _INT, True),
    ("request", _BIGINT, True),  # first_request
    ("cnt", _BIGINT, True),  # of a subscription, a request or an answer
    ("next", _BIGINT, True),  # of a request or an answer
    ("last", _BIGINT, True),  # of an answer
    ("configuration", _BIGINT, True),  # a configuration's number, its own or that it belongs to
    ("key", pa.binary(), True),  # of 128 bits: what the message is routed by, say
    # sequence numbers of a batch of events; null where its reaches were not captured
    ("covered", _BIGINT, True),
    ("payload_length", _INT, True),  # bytes after the fixed head
    ("retransmitted", _BOOLEAN, False),  # some byte of it was seen more than once
    # any counters
    ("advertised", pa.list_(pa.struct([pa.field("stream", _INT), pa.field("cnt", _BIGINT)])), True),
    ("hops", pa.list_(pa.struct([pa.field("stream", _INT), pa.field("region", _INT)])), True),  # of any paths
    ("members", pa.list_(_INT), True),  # of a view: processes; of a configuration: proxies, head first
)

KEY_COLUMN = "key"
ENDS_COLUMNS = ("source", "target")
"""Which columns say between whom a message goes that others pass on."""
ROWS_COLUMNS = ("advertised", "hops", "members")
"""Which columns have the rows of a message that is a list."""

# One row per decoded message and host that saw it. `stream_offset` counts bytes of its TCP direction from 0.
MESSAGES = _schema(
    *_STREAM,
    ("stream_offset", _BIGINT, False),
    ("length", _INT, False),  # whole frame, its length field included
    ("t_first_ns", _BIGINT, False),  # its first byte was seen
    ("t_complete_ns", _BIGINT, True),  # it and every byte before it had been seen; null behind a gap
    *_CONTENT,
)

ARRIVED, LOST, UNSEEN = "arrived", "lost", "unseen"
"""What became of a transfer; unseen: its receiver's capture cannot tell."""

# One row per message that a process sent to another: what the captures at both ends saw of it, together.
TRANSFERS = _schema(
    ("t_ns", _BIGINT, False),  # when it was first seen at all; rows of a file ascend by it
    ("sender", _STRING, True),  # host; null where the address is none of the run's
    ("receiver", _STRING, True),
    ("src", _STRING, False),
    ("sport", _INT, False),
    ("dst", _STRING, False),
    ("dport", _INT, False),
    ("connection", _INT, False),
    ("stream_offset", _BIGINT, False),
    ("length", _INT, False),
    ("t_sent_ns", _BIGINT, True),  # its first byte left the sender; null where that was not captured
    ("t_left_ns", _BIGINT, True),  # its last byte, and every byte before, had left the sender
    ("t_arrived_ns", _BIGINT, True),  # its first byte came to the receiver
    ("t_complete_ns", _BIGINT, True),  # it was whole at the receiver, and so was everything before it
    # 'arrived', 'lost', or 'unseen': the receiver was not captured, or its capture cannot tell
    ("fate", _STRING, False),
    *_CONTENT,
)

# One row per run of stream bytes whose content the capture does not have.
GAPS = _schema(
    *_STREAM,
    ("stream_offset", _BIGINT, False),
    ("length", _BIGINT, False),
    ("cause", _STRING, False),  # 'missing': in no record; 'snapped': beyond the snap length
)

# One row per TCP direction and connection: what was in it and how far it could be decoded.
DECODING = _schema(
    *_STREAM,
    ("segments", _BIGINT, False),  # records with payload
    ("bytes", _BIGINT, False),  # distinct stream bytes seen
    ("retransmitted_segments", _BIGINT, False),  # with bytes that had been seen before
    ("retransmitted_bytes", _BIGINT, False),
    ("stray_segments", _BIGINT, False),  # sequence numbers that cannot belong to the connection
    ("missing_bytes", _BIGINT, False),
    ("snapped_bytes", _BIGINT, False),
    ("messages", _BIGINT, False),
    ("malformed", _BIGINT, False),  # frames whose body is not what their type says
    ("unfinished_bytes", _BIGINT, False),  # start of a message whose end was not captured
    ("undecoded_bytes", _BIGINT, False),  # after decoding had to stop
    ("stopped", _STRING, True),  # why it stopped
)

# One row per capture file.
CAPTURES = _schema(
    ("capture", _STRING, False),
    ("packets", _BIGINT, False),
    ("bytes", _BIGINT, False),  # of the file, unpacked
    ("good_bytes", _BIGINT, False),  # up to the first record that is cut off or damaged
    ("first_ns", _BIGINT, True),
    ("last_ns", _BIGINT, True),
    ("problem", _STRING, True),  # what is wrong with the bytes that are not good, or with the whole file
    # what cannot be used of the good bytes, or not fully, and how often
    ("unused", pa.list_(pa.struct([pa.field("what", _STRING), pa.field("count", _BIGINT)])), False),
)


def spark_schema(schema: pa.Schema) -> "StructType":
    """The same columns for Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  (the core runs without Spark)

    return cast("StructType", cast(Any, from_arrow_schema)(schema))
