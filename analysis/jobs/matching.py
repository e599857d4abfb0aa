"""Joins rows of MESSAGES seen leaving one host and seen arriving at others into rows of TRANSFERS, as they
are read.

Both sides are read in pieces. Messages of one connection are in stream order on either side, so a row waits
for its counterpart only until the other side has passed its offset; the last offset of each connection is
known in advance. Memory therefore holds the distance between the two sides, not the sides.

A datagram to a multicast group is one message to each host that has ever joined the group, so its row is
repeated for each. One that did not arrive concerns only the hosts that were members when it left.

A message that left and did not arrive is lost if the receiver's capture can show that; see `Receivers`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import NEVER, Bools, Ints, group_numbers
from analysis.capture.groups import Members
from analysis.schemas import ARRIVED, LOST, MESSAGES, TRANSFERS, UNSEEN

CONNECTION = ("src", "dst", "sport", "dport", "connection")
Key = tuple[str, str, int, int, int]
_RECEIVED = (*CONNECTION, "receiver")
ReceivedKey = tuple[str, str, int, int, int, str | None]
"""A connection at one of its receivers."""
_OF_ENDS = ("t_ns", "sender", "receiver", "t_sent_ns", "t_left_ns", "t_arrived_ns", "t_complete_ns", "fate")
_SHARED = tuple(name for name in TRANSFERS.names if name not in _OF_ENDS)
COLUMNS = tuple(name for name in MESSAGES.names if name in {"host", *_SHARED, "t_first_ns", "t_complete_ns"})
"""The columns of MESSAGES that transfers need; not the capture and its direction."""
_ROWS = pa.schema([*(MESSAGES.field(name) for name in COLUMNS), pa.field("receiver", pa.string())])
_OFFSET_BITS = 44  # 16 TiB of one stream
_Times = tuple[pa.ChunkedArray | pa.Array, pa.ChunkedArray | pa.Array]
"""When a message was first seen, and when it was complete."""


def key_of(row: Mapping[str, Any]) -> Key:
    """Return the connection, in one direction, of a row of MESSAGES or DECODING."""
    return row["src"], row["dst"], row["sport"], row["dport"], row["connection"]


@dataclass(frozen=True, slots=True)
class Receivers:
    """Which hosts' captures can show that a message did not arrive.

    For a host in `with_drops` (its capture dropped packets), or not in `captured`, nothing is known. For a
    host in `truncated` (its capture is damaged or ended early), or a connection in `undecoded`, a message
    that did not arrive is lost if a later one in the stream arrived; otherwise nothing is known. members: the
    hosts that receive datagrams to groups.
    """

    captured: frozenset[str]  # hosts
    with_drops: frozenset[str] = frozenset()
    truncated: frozenset[str] = frozenset()
    undecoded: frozenset[Key] = frozenset()
    members: Members = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LastOffsets:
    """The offset of the last message of each connection that one side saw, by receiver."""

    last: Mapping[ReceivedKey, int]

    @staticmethod
    def from_table(table: pa.Table) -> "LastOffsets":
        """Compute it from rows of `to_receivers` or `at_receivers`."""
        found = table.group_by(list(_RECEIVED)).aggregate([("stream_offset", "max")]).to_pylist()
        return LastOffsets({_received_key(row): row["stream_offset_max"] for row in found})

    def __or__(self, other: "LastOffsets") -> "LastOffsets":
        keys = {**self.last, **other.last}
        return LastOffsets({key: max(self.last.get(key, -1), other.last.get(key, -1)) for key in keys})


def _received_key(row: Mapping[str, Any]) -> ReceivedKey:
    return *key_of(row), row["receiver"]


def to_receivers(sent: pa.Table, hosts: Mapping[str, str], members: Members) -> pa.Table:
    """Return sent rows of MESSAGES with the column `receiver`: the host with the destination address, or each
    host that was ever a member of the group.
    """
    known = pa.array(list(hosts), pa.string())
    places = pc.index_in(sent.column("dst").combine_chunks(), value_set=known)
    found = sent.append_column("receiver", pa.array(list(hosts.values()), pa.string()).take(places))
    grouped = pc.is_in(sent.column("dst"), value_set=pa.array(list(members), pa.string()))
    if not pc.any(grouped).as_py():
        return found
    parts = [found.filter(pc.invert(grouped))]
    for group, by_host in members.items():
        rows = found.filter(pc.equal(sent.column("dst"), group)).drop_columns("receiver")
        for host in by_host:
            to_others = rows.filter(pc.not_equal(rows.column("host"), host))
            parts.append(to_others.append_column("receiver", pa.repeat(host, to_others.num_rows)))
    return pa.concat_tables(parts)


def at_receivers(arrived: pa.Table) -> pa.Table:
    """Return arrived rows of MESSAGES with the column `receiver`: the host whose capture has them."""
    return arrived.append_column("receiver", arrived.column("host"))


@dataclass(slots=True)
class _Side:
    """Rows that wait for their counterpart, and how far each connection was read."""

    last: Ints  # by connection: offset of the last message; -1: none
    table: pa.Table = field(default_factory=_ROWS.empty_table)
    keys: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    read: Ints = field(init=False)  # by connection: offset read so far

    def __post_init__(self) -> None:
        self.read = np.full(self.last.size, -1)

    def add(self, table: pa.Table, keys: Ints) -> None:
        if not table.num_rows:
            return
        self.table = pa.concat_tables([self.table, table.select(_ROWS.names)])
        self.keys = np.concatenate((self.keys, keys))
        np.maximum.at(self.read, keys >> _OFFSET_BITS, keys & ((1 << _OFFSET_BITS) - 1))

    def passed(self, keys: Ints) -> Bools:
        """Return whether each message would have been read already if this side had it."""
        connection, offset = keys >> _OFFSET_BITS, keys & ((1 << _OFFSET_BITS) - 1)
        found: Bools = (self.read[connection] >= offset) | (self.last[connection] < offset)
        return found

    def keep(self, rows: Ints) -> None:
        self.table = self.table.take(pa.array(rows)) if rows.size else _ROWS.empty_table()
        self.keys = self.keys[rows]


class Matcher:
    """Joins one host's sent messages with their arrivals."""

    def __init__(
        self, sent: LastOffsets, arrived: LastOffsets, hosts: Mapping[str, str], receivers: Receivers
    ) -> None:
        """Prepare for the connections of both sides. hosts: address -> host."""
        keys = list({**sent.last, **arrived.last})
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._sent, self._arrived = (
            _Side(np.array([reach.last.get(key, -1) for key in keys], np.int64)) for reach in (sent, arrived)
        )
        self._hosts = hosts
        self._receivers = receivers
        names = [key[-1] or "" for key in keys]
        self._known = np.array(
            [name in receivers.captured - receivers.with_drops for name in names], np.bool_
        )
        self._to_the_end = np.array(
            [
                name not in receivers.truncated and key[:-1] not in receivers.undecoded
                for key, name in zip(keys, names, strict=True)
            ],
            np.bool_,
        )

    def take(self, sent: pa.Table, arrived: pa.Table) -> pa.Table:
        """Add rows of both sides; returns the transfers known by now, in no order."""
        sent, arrived = to_receivers(sent, self._hosts, self._receivers.members), at_receivers(arrived)
        self._sent.add(sent, self._keys(sent))
        self._arrived.add(arrived, self._keys(arrived))
        order = np.argsort(self._arrived.keys, kind="stable")
        ascending = self._arrived.keys[order]
        place = np.searchsorted(ascending, self._sent.keys)
        inside = np.minimum(place, max(ascending.size - 1, 0))
        both = ascending[inside] == self._sent.keys if ascending.size else np.zeros(place.size, np.bool_)
        left, right = np.flatnonzero(both), order[inside[both]] if ascending.size else place[:0]
        waits = np.ones(ascending.size, np.bool_)
        waits[right] = False
        alone = ~both & self._arrived.passed(self._sent.keys)
        came_alone = waits & self._sent.passed(self._arrived.keys)
        found = [
            self._matched(self._sent.table.take(pa.array(left)), self._arrived.table.take(pa.array(right))),
            self._sent_only(np.flatnonzero(alone)),
            self._arrived_only(self._arrived.table.filter(pa.array(came_alone))),
        ]
        self._sent.keep(np.flatnonzero(~both & ~alone))
        self._arrived.keep(np.flatnonzero(waits & ~came_alone))
        return pa.concat_tables(found)

    def from_uncaptured(self, arrived: pa.Table) -> pa.Table:
        """Return transfers of messages whose senders were not captured."""
        return self._arrived_only(at_receivers(arrived))

    def _arrived_only(self, arrived: pa.Table) -> pa.Table:
        nothing = pa.nulls(arrived.num_rows, pa.int64())
        return self._rows(arrived, (nothing, nothing), _times(arrived), self._fates_of_seen(arrived))

    def _sent_only(self, rows: Ints) -> pa.Table:
        """Return transfers of messages that did not arrive, except to hosts that were not members then."""
        out = self._sent.table.take(pa.array(rows))
        due = _was_member(out, self._receivers.members)
        out, rows = out.filter(pa.array(due)), rows[due]
        nothing = pa.nulls(out.num_rows, pa.int64())
        return self._rows(out, _times(out), (nothing, nothing), self._fates(self._sent.keys[rows]))

    def _matched(self, out: pa.Table, in_: pa.Table) -> pa.Table:
        either = [_either(out.column(name), in_.column(name)) for name in _SHARED]
        same = [out.column(name) for name in ("t_first_ns", "receiver")]
        content = pa.table([*either, *same], [*_SHARED, "t_first_ns", "receiver"])
        return self._rows(content, _times(out), _times(in_), self._fates_of_seen(in_))

    def _keys(self, table: pa.Table) -> Ints:
        """Return one number for each row: connection in the upper bits, offset in the lower."""
        if not table.num_rows:
            return np.zeros(0, np.int64)
        codes = group_numbers([table.column(name).combine_chunks() for name in _RECEIVED])
        _, first = np.unique(codes, return_index=True)
        some = table.select(_RECEIVED).take(pa.array(first)).to_pylist()
        numbers = np.array([self._numbers[_received_key(row)] for row in some], np.int64)
        keys: Ints = numbers[codes] << _OFFSET_BITS | table.column("stream_offset").to_numpy()
        return keys

    def _fates(self, keys: Ints) -> pa.Array:
        """Return the fates of messages that left and did not arrive."""
        connection, offset = keys >> _OFFSET_BITS, keys & ((1 << _OFFSET_BITS) - 1)
        overtaken = self._arrived.last[connection] > offset
        lost = self._known[connection] & (self._to_the_end[connection] | overtaken)
        return pa.array(np.where(lost, LOST, UNSEEN), pa.string())

    def _rows(self, content: pa.Table, left: _Times, came: _Times, fates: pa.Array) -> pa.Table:
        """Return rows of TRANSFERS."""
        columns = {name: content.column(name) for name in _SHARED} | {
            "t_ns": content.column("t_first_ns"),
            "sender": self._names(content.column("src")),
            "receiver": content.column("receiver"),
            "t_sent_ns": left[0],
            "t_left_ns": left[1],
            "t_arrived_ns": came[0],
            "t_complete_ns": came[1],
            "fate": fates,
        }
        return pa.table([columns[field.name].cast(field.type) for field in TRANSFERS], TRANSFERS)

    def _fates_of_seen(self, arrived: pa.Table) -> pa.Array:
        """Return the fates of messages seen at the receiver: arrived if complete, with all earlier bytes."""
        t_complete = arrived.column("t_complete_ns")
        if not t_complete.null_count:
            return pa.repeat(ARRIVED, arrived.num_rows)
        there = pc.is_valid(t_complete).to_numpy()
        lost = np.where(self._known[self._keys(arrived) >> _OFFSET_BITS], LOST, UNSEEN)
        return pa.array(np.where(there, ARRIVED, lost), pa.string())

    def _names(self, addresses: pa.ChunkedArray) -> pa.Array:
        known = pa.array(list(self._hosts), pa.string())
        found = pc.index_in(addresses.combine_chunks(), value_set=known)
        return pa.array(list(self._hosts.values()), pa.string()).take(found)


def _was_member(sent: pa.Table, members: Members) -> Bools:
    """Return which rows of `to_receivers` went to a host itself, or to a group while it was a member."""
    due = np.ones(sent.num_rows, np.bool_)
    for group, by_host in members.items():
        rows = np.flatnonzero(pc.equal(sent.column("dst"), group).to_numpy())
        t_ns = sent.column("t_first_ns").to_numpy()[rows]
        receivers = np.array(sent.column("receiver").take(pa.array(rows)).to_pylist(), np.str_)
        due[rows] = False
        for host, times in by_host.items():
            for joined_ns, left_ns in times:
                then = (t_ns >= joined_ns) & (t_ns < (NEVER if left_ns is None else left_ns))
                due[rows[then & (receivers == host)]] = True
    return due


def _times(seen: pa.Table) -> _Times:
    return seen.column("t_first_ns"), seen.column("t_complete_ns")


def _either(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the first value, or the second if the first is null."""
    if not first.null_count or second.null_count == len(second):
        return first
    if not pa.types.is_list(first.type):
        return pc.coalesce(first, second)
    both = pa.concat_arrays([*first.chunks, *second.chunks])  # pc.coalesce does not support lists
    rows = np.arange(len(first))
    there = pc.is_valid(first).to_numpy()
    return pa.chunked_array([both.take(pa.array(np.where(there, rows, rows + rows.size)))])


def match(
    sent: pa.Table, arrived: pa.Table, hosts: Mapping[str, str], captured: Collection[str] | Receivers
) -> pa.Table:
    """Join all rows of MESSAGES seen leaving and seen arriving into rows of TRANSFERS, in no order.

    hosts: address -> host. captured: the hosts with complete captures: messages missing from `arrived` did
    not arrive.
    """
    receivers = captured if isinstance(captured, Receivers) else Receivers(frozenset(captured))
    left = LastOffsets.from_table(to_receivers(sent, hosts, receivers.members))
    came = LastOffsets.from_table(at_receivers(arrived))
    return Matcher(left, came, hosts, receivers).take(sent, arrived)
