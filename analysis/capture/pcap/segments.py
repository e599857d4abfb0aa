"""Selects the TCP segments of a capture that carry payload, or begin or reset a connection."""

import numpy as np

from analysis.arrays import Ints
from analysis.capture.pcap.fields import DIRECTION, TCP, Columns
from analysis.capture.pcap.reassemble import RST, SYN


def segment_rows(columns: Columns, port: int | None) -> Ints:
    """Return the indices of TCP segments from or to a port (None: any) that carry payload, or begin or reset
    a connection.
    """
    wanted = columns["proto"] == TCP
    if port is not None:
        wanted &= (columns["sport"] == port) | (columns["dport"] == port)
    return np.flatnonzero(wanted & ((columns["payload_length"] > 0) | (columns["flags"] & (SYN | RST) != 0)))


def pick_segments(columns: Columns, port: int | None) -> Columns:
    """Return the columns of `DIRECTION` and `TcpSegments` of the segments that `segment_rows` selects."""
    rows = segment_rows(columns, port)
    payload_at = columns["payload_offset"][rows].astype(np.int64)
    length = columns["payload_length"][rows].astype(np.int64)
    return {name: columns[name][rows] for name in (*DIRECTION, "t_ns", "seq")} | {
        "flags": columns["flags"][rows].astype(np.int64),
        "at": columns["offset"][rows] + payload_at,
        "length": length,
        "captured": np.clip(columns["length"][rows] - payload_at, 0, length),
    }
