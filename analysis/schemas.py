"""The tables that come straight from captures: one definition of each, for NumPy, Arrow, Parquet and Spark.

Each schema is an Arrow schema; `spark_schema` derives Spark's from it, so the two cannot differ (Spark
insists on the same order, types and nullability from Python). All times are CLOCK_REALTIME nanoseconds as
bigint, since Spark has no nanosecond time stamp. Tables computed from these (events, timelines) have
schemas of their own.
"""

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from analysis.columns import BIGINT, BOOLEAN, INT, STRING, Column, table_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


# One row per record of a capture. Where a header is missing or cut off, its columns are 0, and `proto` is -1
# where no IP header could be read. Payload stays in the capture: `payload_length` bytes (of which only
# `length - payload_offset` were captured) at `offset + payload_offset`.
PACKETS = table_schema(
    ("capture", STRING, False, "file name without its ending, as r2-proxy-0-eth0 or r2-r3@r2"),
    ("t_ns", BIGINT, False, "when it was captured"),
    ("offset", BIGINT, False, "of the captured bytes in the file, bytes"),
    ("length", INT, False, "captured bytes"),
    ("wire_length", INT, False, "bytes on the wire"),
    ("src_hi", BIGINT, False, "source address, upper half of an IPv6 address; 0 of IPv4: ip(src_hi, src_lo)"),
    ("src_lo", BIGINT, False, "source address, lower half; of IPv4 the address"),
    ("dst_hi", BIGINT, False, "destination address, upper half, likewise"),
    ("dst_lo", BIGINT, False, "destination address, lower half"),
    ("sport", INT, False, "source port"),
    ("dport", INT, False, "destination port"),
    ("proto", INT, False, "6 TCP, 17 UDP...; -1 without an IP header"),
    ("seq", BIGINT, False, "TCP sequence number"),
    ("ack", BIGINT, False, "TCP acknowledgement number"),
    ("flags", INT, False, "of TCP: FIN 1, SYN 2, RST 4, PSH 8, ACK 16"),
    ("ip_id", INT, False, "identification in the IPv4 header"),
    ("payload_offset", INT, False, "of the payload within the captured bytes"),
    ("payload_length", INT, False, "bytes by the IP length: without padding, with what was cut off"),
)

# The columns that name one TCP direction in one capture.
_STREAM: tuple[Column, ...] = (
    ("capture", STRING, False, "file name without its ending"),
    ("host", STRING, False, "whose capture it is"),
    ("direction", STRING, False, "'in' or 'out' of that host"),
    ("src", STRING, False, "source address"),
    ("sport", INT, False, "source port"),
    ("dst", STRING, False, "destination address"),
    ("dport", INT, False, "destination port"),
    ("connection", INT, False, "counts the connections that used the same ports, from 0"),
)

# What is known of a message from its own bytes: the columns that a message has wherever it was seen.
_CONTENT: tuple[Column, ...] = (
    ("type", STRING, False, "of the inmost message, whose the other columns are, as EVENTS"),
    ("within", STRING, True, "the types of the messages that it came in, the outermost first"),
    ("source", BIGINT, True, "whose it is, where others pass it on: an IPv4 address as a number"),
    ("target", BIGINT, True, "for whom it is, likewise"),
    ("stream", INT, True, "number of the stream whose events it carries or names"),
    ("kind", INT, True, "the system's own kind within its type"),
    ("first_seq", BIGINT, True, "first sequence number of its events"),
    ("count", INT, True, "of its events"),
    ("request", BIGINT, True, "number of the publisher's first request in it"),
    ("cnt", BIGINT, True, "of a subscription, a request or an answer: events had so far"),
    ("next", BIGINT, True, "of a request or an answer: the next sequence number"),
    ("last", BIGINT, True, "of an answer: the last sequence number"),
    ("configuration", BIGINT, True, "a configuration's number, its own or that it belongs to"),
    ("key", pa.binary(), True, "128 bits: what the message is routed by"),
    ("covered", BIGINT, True, "sequence numbers of a batch; null where its reaches were not captured"),
    ("payload_length", INT, True, "bytes after the fixed head"),
    ("retransmitted", BOOLEAN, False, "whether some byte of it was seen more than once"),
    (
        "advertised",
        pa.list_(pa.struct([pa.field("stream", INT), pa.field("cnt", BIGINT)])),
        True,
        "any counters in it, a row for each stream",
    ),
    (
        "hops",
        pa.list_(pa.struct([pa.field("stream", INT), pa.field("region", INT)])),
        True,
        "any paths in it: the regions of each stream, in order",
    ),
    ("members", pa.list_(INT), True, "of a view: processes; of a configuration: proxies, head first"),
)

KEY_COLUMN = "key"
ENDS_COLUMNS = ("source", "target")
"""Which columns say between whom a message goes that others pass on."""
ROWS_COLUMNS = ("advertised", "hops", "members")
"""Which columns have the rows of a message that is a list."""

# One row per decoded message and host that saw it. `stream_offset` counts bytes of its TCP direction from 0.
MESSAGES = table_schema(
    *_STREAM,
    ("stream_offset", BIGINT, False, "of its first byte in its TCP direction, from 0"),
    ("length", INT, False, "bytes of the whole frame, its length field included"),
    ("t_first_ns", BIGINT, False, "when its first byte was seen"),
    ("t_complete_ns", BIGINT, True, "when it and every byte before it had been seen; null behind a gap"),
    *_CONTENT,
)

ARRIVED, LOST, UNSEEN = "arrived", "lost", "unseen"
"""What became of a transfer; unseen: its receiver's capture cannot tell."""

# One row per message that a process sent to another: what the captures at both ends saw of it, together.
TRANSFERS = table_schema(
    ("t_ns", BIGINT, False, "when it was first seen at all; rows of a file ascend by it"),
    ("sender", STRING, True, "host; null where the address is none of the run's"),
    ("receiver", STRING, True, "host, likewise"),
    ("src", STRING, False, "source address"),
    ("sport", INT, False, "source port"),
    ("dst", STRING, False, "destination address"),
    ("dport", INT, False, "destination port"),
    ("connection", INT, False, "counts the connections that used the same ports, from 0"),
    ("stream_offset", BIGINT, False, "of its first byte in its TCP direction, from 0"),
    ("length", INT, False, "bytes of the whole frame"),
    ("t_sent_ns", BIGINT, True, "when its first byte left the sender; null where that was not captured"),
    ("t_left_ns", BIGINT, True, "when its last byte, and every byte before, had left the sender"),
    ("t_arrived_ns", BIGINT, True, "when its first byte came to the receiver"),
    ("t_complete_ns", BIGINT, True, "when it was whole at the receiver, and so was everything before it"),
    ("fate", STRING, False, "'arrived', 'lost', or 'unseen': the receiver's capture cannot tell, or is none"),
    *_CONTENT,
)

# One row per run of stream bytes whose content the capture does not have.
GAPS = table_schema(
    *_STREAM,
    ("stream_offset", BIGINT, False, "of its first byte in its TCP direction, from 0"),
    ("length", BIGINT, False, "bytes"),
    ("cause", STRING, False, "'missing': in no record; 'snapped': beyond the snap length"),
)

# One row per TCP direction and connection: what was in it and how far it could be decoded.
DECODING = table_schema(
    *_STREAM,
    ("segments", BIGINT, False, "records with payload"),
    ("bytes", BIGINT, False, "distinct bytes of the stream that were seen"),
    ("retransmitted_segments", BIGINT, False, "with bytes that had been seen before"),
    ("retransmitted_bytes", BIGINT, False, "seen before"),
    ("stray_segments", BIGINT, False, "with sequence numbers that cannot belong to the connection"),
    ("missing_bytes", BIGINT, False, "in no record"),
    ("snapped_bytes", BIGINT, False, "beyond the snap length"),
    ("reset", BOOLEAN, False, "whether its sender broke the connection off (RST, RFC 9293 3.5.2)"),
    ("messages", BIGINT, False, "decoded"),
    ("malformed", BIGINT, False, "frames whose body is not what their type says"),
    ("unfinished_bytes", BIGINT, False, "start of a message whose end was not captured"),
    ("undecoded_bytes", BIGINT, False, "after decoding had to stop"),
    ("stopped", STRING, True, "why it stopped; null where it did not"),
)

# One row per capture file.
CAPTURES = table_schema(
    ("capture", STRING, False, "file name without its ending"),
    ("packets", BIGINT, False, "in it"),
    ("bytes", BIGINT, False, "of the file, unpacked"),
    ("good_bytes", BIGINT, False, "up to the first record that is cut off or damaged"),
    ("first_ns", BIGINT, True, "its first packet's time"),
    ("last_ns", BIGINT, True, "its last packet's time"),
    ("problem", STRING, True, "what is wrong with the bytes that are not good, or with the whole file"),
    (
        "unused",
        pa.list_(pa.struct([pa.field("what", STRING), pa.field("count", BIGINT)])),
        False,
        "what cannot be used of the good bytes, or not fully, and how often",
    ),
)


def spark_schema(schema: pa.Schema) -> "StructType":
    """The same columns for Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  (the core runs without Spark)

    return cast("StructType", cast(Any, from_arrow_schema)(schema))
