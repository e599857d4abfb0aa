"""Tables that come directly from captures: one definition of each for NumPy, Arrow, Parquet and Spark.

Each schema is an Arrow schema; `spark_schema` derives Spark's from it, so the two cannot differ (Spark
requires the same order, types and nullability from Python). All times are CLOCK_REALTIME nanoseconds as
bigint, since Spark has no nanosecond time stamp. Tables computed from these (events, timelines) have their
own schemas.
"""

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from analysis.columns import BIGINT, BOOLEAN, INT, STRING, Column, table_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


# One row per record of a capture. If a header is missing or cut off, its columns are 0; `proto` is -1 if no
# IP header could be read. Payload stays in the capture: `payload_length` bytes at `offset + payload_offset`,
# but only the first `length - payload_offset` of them were captured.
PACKETS = table_schema(
    ("capture", STRING, False, "file name without its ending, e.g. r2-proxy-0-eth0 or r2-r3@r2"),
    ("t_ns", BIGINT, False, "when it was captured"),
    ("offset", BIGINT, False, "position of the captured bytes in the file, bytes"),
    ("length", INT, False, "captured bytes"),
    ("wire_length", INT, False, "bytes on the wire"),
    ("src_hi", BIGINT, False, "source address, upper half if IPv6, 0 if IPv4: ip(src_hi, src_lo)"),
    ("src_lo", BIGINT, False, "source address, lower half if IPv6, whole address if IPv4"),
    ("dst_hi", BIGINT, False, "destination address, as src_hi"),
    ("dst_lo", BIGINT, False, "destination address, as src_lo"),
    ("sport", INT, False, "source port"),
    ("dport", INT, False, "destination port"),
    ("proto", INT, False, "6 TCP, 17 UDP...; -1 without an IP header"),
    ("seq", BIGINT, False, "TCP sequence number"),
    ("ack", BIGINT, False, "TCP acknowledgement number"),
    ("flags", INT, False, "TCP flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16"),
    ("ip_id", INT, False, "identification in the IPv4 header"),
    ("payload_offset", INT, False, "start of the payload within the captured bytes, bytes"),
    ("payload_length", INT, False, "bytes by the IP length: without padding, including bytes cut off"),
    ("digest", BIGINT, False, "CRC-32 of a UDP packet's captured payload; 0 for others"),
    (
        "checksum",
        INT,
        False,
        "on links: 1 if the checksums of IPv4 with TCP or UDP are right or left to the hardware, -1 if one is"
        " wrong; 0: not checked",
    ),
    (
        "sender",
        BIGINT,
        False,
        "on links: address of the gateway's interface that sent the frame, by its MAC address; else 0",
    ),
)

# The columns that name one TCP direction in one capture.
_STREAM: tuple[Column, ...] = (
    ("capture", STRING, False, "file name without its ending"),
    ("host", STRING, False, "host that captured it"),
    ("direction", STRING, False, "'in' or 'out', from that host's point of view"),
    ("src", STRING, False, "source address"),
    ("sport", INT, False, "source port"),
    ("dst", STRING, False, "destination address"),
    ("dport", INT, False, "destination port"),
    ("connection", INT, False, "number of the connection among those with the same ports, from 0"),
)

# Columns decoded from a message's own bytes: the same wherever the message was seen.
_CONTENT: tuple[Column, ...] = (
    ("type", STRING, False, "of the innermost message, which the other columns describe, e.g. EVENTS"),
    ("within", STRING, True, "types of the enclosing messages, outermost first"),
    ("source", BIGINT, True, "its originator if others forward it: an IPv4 address as a number"),
    ("target", BIGINT, True, "its destination if others forward it: an IPv4 address as a number"),
    ("stream", INT, True, "number of the stream whose events it carries or names"),
    ("kind", INT, True, "the system's own kind within its type"),
    ("first_seq", BIGINT, True, "first sequence number of its events"),
    ("count", INT, True, "number of its events"),
    ("request", BIGINT, True, "number of the publisher's first request in it"),
    ("cnt", BIGINT, True, "in a subscription, request or answer: events received so far"),
    ("next", BIGINT, True, "in a request or answer: the next sequence number"),
    ("last", BIGINT, True, "in an answer: the last sequence number"),
    ("configuration", BIGINT, True, "number of the configuration that it describes or belongs to"),
    ("key", pa.binary(), True, "128-bit key that the message is routed by"),
    ("covered", BIGINT, True, "sequence numbers that a batch covers; null if they were not captured"),
    ("payload_length", INT, True, "bytes after the fixed head"),
    ("retransmitted", BOOLEAN, False, "whether any of its bytes was seen more than once"),
    (
        "advertised",
        pa.list_(pa.struct([pa.field("stream", INT), pa.field("cnt", BIGINT)])),
        True,
        "its counters, one row per stream",
    ),
    (
        "hops",
        pa.list_(pa.struct([pa.field("stream", INT), pa.field("region", INT)])),
        True,
        "its paths: the regions of each stream, in order",
    ),
    ("members", pa.list_(INT), True, "processes of a view, or proxies of a configuration, head first"),
)

KEY_COLUMN = "key"
ENDS_COLUMNS = ("source", "target")
"""The columns with the end points of a forwarded message."""
ROWS_COLUMNS = ("advertised", "hops", "members")
"""The columns with the rows of a message that is a list."""

# One row per decoded message and host that saw it. `stream_offset` counts bytes of its TCP direction from 0.
MESSAGES = table_schema(
    *_STREAM,
    ("stream_offset", BIGINT, False, "offset of its first byte in its TCP direction, from 0"),
    ("length", INT, False, "bytes of the whole frame, including its length field"),
    ("t_first_ns", BIGINT, False, "when its first byte was seen"),
    ("t_complete_ns", BIGINT, True, "when it and all earlier bytes had been seen; null after a gap"),
    *_CONTENT,
)

ARRIVED, LOST, UNSEEN = "arrived", "lost", "unseen"
"""Fate of a transfer. unseen: the receiver's capture does not show whether it arrived."""

# One row per message from one process to another: joined from the captures at both ends.
TRANSFERS = table_schema(
    ("t_ns", BIGINT, False, "when it was first seen at either end; rows of a file are sorted by it"),
    ("sender", STRING, True, "sending host; null if the address does not belong to the run"),
    ("receiver", STRING, True, "receiving host; null as sender"),
    ("src", STRING, False, "source address"),
    ("sport", INT, False, "source port"),
    ("dst", STRING, False, "destination address; one row per member if it is a multicast group's"),
    ("dport", INT, False, "destination port"),
    ("connection", INT, False, "number of the connection among those with the same ports, from 0"),
    ("stream_offset", BIGINT, False, "offset of its first byte in its TCP direction, from 0"),
    ("length", INT, False, "bytes of the whole frame"),
    ("t_sent_ns", BIGINT, True, "when its first byte left the sender; null if not captured"),
    ("t_left_ns", BIGINT, True, "when its last byte and all earlier bytes had left the sender"),
    ("t_arrived_ns", BIGINT, True, "when its first byte arrived at the receiver"),
    ("t_complete_ns", BIGINT, True, "when it and all earlier bytes had arrived at the receiver"),
    (
        "fate",
        STRING,
        False,
        "'arrived', 'lost', or 'unseen': the receiver's capture is missing or does not show it",
    ),
    *_CONTENT,
)

# One row per contiguous range of bytes that the capture lacks in a stream, or in a fragmented UDP datagram.
GAPS = table_schema(
    *_STREAM,
    ("stream_offset", BIGINT, False, "offset of its first byte in its TCP direction or UDP datagram, from 0"),
    ("length", BIGINT, False, "bytes"),
    ("cause", STRING, False, "'missing': in no record; 'snapped': beyond the snap length"),
)

# One row per time for which a host had joined a multicast group, by its own IGMP reports.
MEMBERSHIPS = table_schema(
    ("host", STRING, False, "host that joined it"),
    ("group", STRING, False, "the group's address"),
    ("joined_ns", BIGINT, False, "when it reported that it had joined"),
    ("left_ns", BIGINT, True, "when it reported that it had left; null if it stayed"),
)

# One row per TCP direction and connection: its content and how far it could be decoded.
DECODING = table_schema(
    *_STREAM,
    ("segments", BIGINT, False, "records with payload"),
    ("bytes", BIGINT, False, "distinct bytes of the stream in the capture"),
    ("retransmitted_segments", BIGINT, False, "segments with bytes seen before"),
    ("retransmitted_bytes", BIGINT, False, "bytes seen before"),
    ("stray_segments", BIGINT, False, "segments with sequence numbers that cannot belong to the connection"),
    ("missing_bytes", BIGINT, False, "bytes in no record"),
    ("snapped_bytes", BIGINT, False, "bytes beyond the snap length"),
    ("reset", BOOLEAN, False, "whether its sender reset the connection (RST, RFC 9293 3.5.2)"),
    ("messages", BIGINT, False, "messages decoded"),
    ("malformed", BIGINT, False, "frames with a body that does not match their type"),
    ("unfinished_bytes", BIGINT, False, "bytes of a last message that was not captured to its end"),
    ("undecoded_bytes", BIGINT, False, "bytes after decoding stopped"),
    ("stopped", STRING, True, "why decoding stopped; null if it did not"),
)

# One row per capture file.
CAPTURES = table_schema(
    ("capture", STRING, False, "file name without its ending"),
    ("packets", BIGINT, False, "number of packets"),
    ("bytes", BIGINT, False, "size of the file, uncompressed"),
    ("good_bytes", BIGINT, False, "bytes before the first record that is cut off or damaged"),
    ("first_ns", BIGINT, True, "time of its first packet"),
    ("last_ns", BIGINT, True, "time of its last packet"),
    ("problem", STRING, True, "why the remaining bytes, or the whole file, cannot be used"),
    (
        "unused",
        pa.list_(pa.struct([pa.field("what", STRING), pa.field("count", BIGINT)])),
        False,
        "kinds of records in the good bytes that cannot be used, or only in part, with counts",
    ),
)


def spark_schema(schema: pa.Schema) -> "StructType":
    """Return the same schema for Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415  (the core runs without Spark)

    return cast("StructType", cast(Any, from_arrow_schema)(schema))
