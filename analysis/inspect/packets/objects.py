"""Messages as JSON objects, one per line, for programs. `KEYS` describes each key.

Times are seconds since time 0 of the run, except `t_ns`. Keys without a value are null; keys of `CONTENT` are
present only in messages that have such a field.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from analysis.inspect.packets.dissect import dissect
from analysis.messages.label import address_text, label
from analysis.schemas import ENDS_COLUMNS
from analysis.timelines.run_metadata import RunMetadata
from node.core.message_layout import Codec

if TYPE_CHECKING:
    from analysis.inspect.packets.raw import MessageBytes

Row = Mapping[str, Any]

CONNECTION = {
    "src": "address",
    "sport": "port",
    "dst": "address",
    "dport": "port",
    "connection": "counts the connections of the same addresses and ports, from 0",
    "stream_offset": "position of its first byte in this direction of the connection",
}
"""Keys that locate a byte in a connection."""
KEYS = {
    "t": "s since time 0: when it was first seen, at the sender if captured there",
    "t_ns": "the same on the hosts' clock, ns since 1970",
    "from": "the host that sent it; null for an address outside the run",
    "to": "the host to which it was sent",
    "link": "the link between regions that the direct route crosses; null inside a region",
    "type": "message type, as EVENTS; of nested messages the innermost",
    "within": "types of the messages that contain it, the outermost first; null if none",
    "label": "the message in one line",
    "stream": "number of its stream",
    "first_seq": "first sequence number that it carries",
    "last_seq": "last sequence number that it carries",
    "bytes": "size on the wire, with its header",
    "fate": "arrived, lost, or unseen: its receiver was not captured",
    "delay_ms": "from its first byte at the sender until it was complete at the receiver",
    "error_ms": "error bound of delay_ms if two machines' clocks measured it; null for one clock",
    "retransmitted": "some byte of it was seen more than once",
    "sent": "s: its first byte left the sender",
    "left": "s: its last byte, and all before it, had left the sender",
    "arrived": "s: its first byte reached the receiver",
    "complete": "s: it and all bytes before it had reached the receiver",
    **CONNECTION,
}
CONTENT = {
    "source": "address of the originating node, if others relay it",
    "target": "address of the destination node, likewise",
    "kind": "kind of the events: 0 data, 1 garbage collection, 2 tombstone",
    "count": "events in it",
    "key": "128 bits, hexadecimal",
    "covered": "sequence numbers that it covers, collected ones included",
    "request": "the publisher's number of the first event",
    "cnt": "the sender's last event, or the last event that is requested",
    "next": "the first event that is requested",
    "last": "the last event of an answer",
    "configuration": "number of a configuration",
    "payload_length": "number of bytes after the fixed fields",
    "advertised": "counters: stream and cnt of each",
    "hops": "paths: stream and region of each",
    "members": "processes of a view, proxies of a configuration",
}
RAW = {
    "capture": "the capture that has the bytes; null if none has them",
    "packets": "number of packets that carry them",
    "fields": "each with its offset, bytes (hexadecimal, `..` if not captured), "
    "name, value, unit and meaning of the value",
}
COLUMNS_OF_TIMES = {
    "sent": "t_sent_ns",
    "left": "t_left_ns",
    "arrived": "t_arrived_ns",
    "complete": "t_complete_ns",
}
_SAME = (
    "t_ns", "type", "within", "stream", "first_seq", "fate", "retransmitted",
    "src", "sport", "dst", "dport", "connection", "stream_offset",
)  # fmt: skip


def describe(metadata: RunMetadata) -> Callable[[Row], dict[str, Any]]:
    """Return the function that turns a row of TRANSFERS of this run into an object with KEYS."""
    region = {host.name: host.region for host in metadata.hosts.values()}

    def one(row: Row) -> dict[str, Any]:
        sender, receiver = row["sender"], row["receiver"]
        hop = region.get(sender, ""), region.get(receiver, "")
        found: dict[str, Any] = {name: row[name] for name in _SAME}
        found |= {name: seconds(row[column], metadata) for name, column in COLUMNS_OF_TIMES.items()}
        found |= {
            "t": seconds(row["t_ns"], metadata),
            "from": sender,
            "to": receiver,
            "link": metadata.link_at(hop, row["t_ns"]) if hop[0] != hop[1] else None,
            "label": label(row, metadata.declared.name, metadata.host_at),
            "last_seq": last_seq(row),
            "bytes": row["length"],
            "delay_ms": delay_ms(row),
            "error_ms": error_ms(row, metadata),
        }
        found = {name: found[name] for name in KEYS}
        return found | {name: _shown(name, row[name]) for name in CONTENT if row[name] is not None}

    return one


def _shown(name: str, value: Any) -> Any:
    if name in ENDS_COLUMNS:
        return address_text(value)
    return value.hex() if isinstance(value, bytes) else value


def seconds(t_ns: int | None, metadata: RunMetadata) -> float | None:
    """Return seconds since time 0 of the run, to the nanosecond."""
    return None if t_ns is None else round(metadata.seconds(t_ns), 9)


def delay_ms(row: Row) -> float | None:
    """Return the time from the first byte at the sender to complete arrival.

    Returns None if one of them was not seen.
    """
    if row["t_sent_ns"] is None or row["t_complete_ns"] is None:
        return None
    return float(row["t_complete_ns"] - row["t_sent_ns"]) / 1e6


def error_ms(row: Row, metadata: RunMetadata) -> float | None:
    """Return the error bound of `delay_ms` if two machines' clocks measured it; None for one clock."""
    error_bound_ns = (
        None
        if delay_ms(row) is None
        else metadata.clocks.error_bound_ns(row["sender"], row["receiver"], row["t_ns"])
    )
    return None if error_bound_ns is None else round(error_bound_ns / 1e6, 6)


def last_seq(row: Row) -> int | None:
    """Return the last sequence number that a message carries."""
    reach = row["covered"] if row["covered"] is not None else row["count"]
    return None if row["first_seq"] is None or reach is None else int(row["first_seq"] + reach - 1)


def describe_bytes(raw: "MessageBytes | None", codec: Codec) -> dict[str, Any]:
    """Return the object with the keys RAW."""
    if raw is None:
        return {"capture": None, "packets": 0, "fields": []}
    fields = [
        {
            "offset": part.offset,
            "bytes": "".join(part.octets(0, len(part.content.data))),
            "name": part.name,
            "value": part.value,
            "unit": part.unit,
            "means": part.said,
        }
        for part in dissect(raw.content, codec)
    ]
    return {"capture": raw.capture, "packets": raw.packets, "fields": fields}
