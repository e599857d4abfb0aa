"""Maps messages to TCP: their direction, and the sequence numbers of their bytes.

The table of transfers has a message's offset in its connection. The sequence number of that byte is the one
of the connection's SYN plus 1 plus the offset (RFC 9293, section 3.4). SYNs are found in the table of
packets; a message belongs to the last SYN before it.
"""

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arrays import Ints
from analysis.capture.pcap.fields import DIRECTION
from analysis.capture.pcap.reassemble import SYN
from analysis.capture.pcap.streams import halves
from experiments.records.rundir import RunDirectory

Direction = tuple[int, int, int, int, int, int]
"""One TCP direction as in PACKETS: the values of DIRECTION."""
SEQUENCE_NUMBERS = 1 << 32
_OF_SYNS = ["t_ns", "seq", *DIRECTION]

Mask = npt.NDArray[np.bool_]
Columns = Mapping[str, npt.NDArray[Any]]


def direction_of(row: Mapping[str, Any]) -> Direction:
    """Return the direction of a row of TRANSFERS."""
    src, dst = halves(row["src"]), halves(row["dst"])
    return (*src, row["sport"], *dst, row["dport"])


def key_of(packet: Mapping[str, Any]) -> Direction:
    """Return the direction of a row of PACKETS."""
    return (
        packet["src_hi"], packet["src_lo"], packet["sport"],
        packet["dst_hi"], packet["dst_lo"], packet["dport"],
    )  # fmt: skip


def relative(seq: int, first: int) -> int:
    """Return the position of a sequence number after another, within half of all on either side."""
    half = SEQUENCE_NUMBERS // 2
    return (seq - first + half) % SEQUENCE_NUMBERS - half


class RowKeys:
    """Finds rows by several integer columns at once, exactly and for whole arrays."""

    def __init__(self, keys: Iterable[Sequence[int]]) -> None:
        self.keys = sorted(set(map(tuple, keys)))
        table = np.array(self.keys, np.int64)
        self._values = [np.unique(column) for column in table.T]
        self._codes = self._encode(list(table.T))[0]  # ascending like the keys

    def find(self, columns: Sequence[npt.NDArray[Any]]) -> Ints:
        """Return the index of each row's key; -1 for none."""
        if not self.keys:
            return np.full(columns[0].size, -1)
        codes, known = self._encode(columns)
        places = np.minimum(np.searchsorted(self._codes, codes), len(self.keys) - 1)
        return np.where(known & (self._codes[places] == codes), places, -1)

    def _encode(self, columns: Sequence[npt.NDArray[Any]]) -> tuple[Ints, Mask]:
        codes = np.zeros(columns[0].size if columns else 0, np.int64)
        known = np.ones(codes.size, np.bool_)
        for values, column in zip(self._values, columns, strict=True):
            places = np.minimum(np.searchsorted(values, column), values.size - 1)
            known &= values[places] == column
            codes = codes * values.size + places
        return codes, known


class ConnectionSyns:
    """The SYNs of a run by direction: when connections began, and their initial sequence numbers."""

    def __init__(self, syns: Iterable[Mapping[str, Any]]) -> None:
        """Collect SYNs from rows of PACKETS."""
        self._begun: dict[Direction, list[tuple[int, int]]] = defaultdict(list)
        for row in sorted(syns, key=lambda syn: int(syn["t_ns"])):
            self._begun[key_of(row)].append((row["t_ns"], row["seq"]))

    def opened(self, row: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return when the connection of a row of TRANSFERS began, and its initial sequence number.

        Returns None if its SYN was not captured.
        """
        begun = self._begun.get(direction_of(row), [])
        place = bisect_right(begun, (row["t_ns"], SEQUENCE_NUMBERS)) - 1  # the last one before the message
        return None if place < 0 else begun[place]

    def first_byte(self, row: Mapping[str, Any]) -> int | None:
        """Return the sequence number of the first byte of a row of TRANSFERS; None without its SYN."""
        opened = self.opened(row)
        return None if opened is None else (opened[1] + 1 + int(row["stream_offset"])) % SEQUENCE_NUMBERS


def read_syns(run: RunDirectory) -> ConnectionSyns:
    """Read the SYNs from the table of packets.

    Row groups without a SYN, the majority, are read for flags only.
    """
    found: list[dict[str, Any]] = []
    for path in sorted(run.table("packets").glob("part-*.parquet")):
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                flags = file.read_row_group(group, ["flags"], use_threads=False).column("flags")
                there = np.flatnonzero(flags.to_numpy() & SYN)
                if there.size:
                    rows = file.read_row_group(group, _OF_SYNS, use_threads=False)
                    found += rows.take(pa.array(there)).to_pylist()
    return ConnectionSyns(found)


class Ranges:
    """The bytes of some messages as ascending, disjoint ranges of sequence numbers, by direction."""

    def __init__(self, messages: Iterable[tuple[Direction, int, int]]) -> None:
        """Build ranges from (direction, sequence number, length) of messages.

        Memory: three numbers per message.
        """
        met: dict[Direction, int] = {}
        numbers = array("q")
        for direction, seq, length in messages:
            numbers.extend((met.setdefault(direction, len(met)), seq, length))
        self.directions = RowKeys(met)
        order = np.zeros(len(met), np.int64)
        for place, key in enumerate(self.directions.keys):
            order[met[cast("Direction", key)]] = place
        which, begin, size = np.array(numbers, np.int64).reshape(-1, 3).T
        first = _place(order[which], begin)
        sort = np.argsort(first, kind="stable")
        first, reach = first[sort], np.maximum.accumulate((first + size)[sort])
        starts = np.flatnonzero(np.concatenate(([True], first[1:] > reach[:-1]))) if first.size else first
        self._first = first[starts]
        self._end = np.concatenate((reach[starts[1:] - 1], reach[-1:]))

    def carried_by(self, packets: Columns) -> Mask:
        """Return which packets carry some of these bytes.

        packets: columns DIRECTION, seq and payload_length.
        """
        number = self.directions.find([packets[name] for name in DIRECTION])
        seq, length = packets["seq"].astype(np.int64), packets["payload_length"].astype(np.int64)
        known = (number >= 0) & (length > 0)
        place = _place(number, seq)
        # a wrapped range continues beyond 2^32, a wrapped packet begins below 0
        turns = (0, SEQUENCE_NUMBERS, -SEQUENCE_NUMBERS)
        found: Mask = known & np.any([self._meets(place + turn, length) for turn in turns], axis=0)
        return found

    def _meets(self, first: Ints, length: Ints) -> Mask:
        if not self._first.size:
            return np.zeros(first.size, np.bool_)
        place = np.searchsorted(self._first, first + length, side="left") - 1
        return (place >= 0) & (self._end[np.maximum(place, 0)] > first)


def _place(direction: Any, seq: Any) -> Any:
    """Map sequence numbers of all directions to one line, with room for one wrap on either side of each."""
    return (4 * direction + 1) * SEQUENCE_NUMBERS + seq
