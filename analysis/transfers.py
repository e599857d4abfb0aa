"""The table of transfers: each message once, with what the captures of its sender and of its receiver saw.

Both captures show the same bytes of one TCP direction, so a message is told by its connection and its offset
in the stream. One task makes the transfers of one sender: its own capture's outgoing messages, joined with
the incoming ones at every host that it sent to. A message that left and never was whole at the receiver is
lost; where the receiver has no capture nobody knows, and it is unseen. Messages from where nothing was
captured stand by what their receiver saw.

This table is what people debug with: `cutset packets`, `follow`, `diagram` and the report's moments read it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from analysis.extraction import COMPRESSION, part_name
from analysis.pcap.batches import TimeRange
from analysis.schemas import MESSAGES, TRANSFERS
from experiments.rundir import RunDirectory
from topologies.errors import InputError

_KEY = ("src", "dst", "sport", "dport", "connection", "stream_offset")
_OF_ENDS = ("t_ns", "sender", "receiver", "t_sent_ns", "t_left_ns", "t_arrived_ns", "t_complete_ns", "fate")
_SHARED = tuple(name for name in TRANSFERS.names if name not in _OF_ENDS)
ROW_GROUP_ROWS = 32_768  # a second or so of a busy host: what a look at one moment has to read


@dataclass(frozen=True, slots=True)
class MatchTransfers:
    """The transfers that one host sent; and those it got from where nothing was captured."""

    host: str
    messages: Path  # the table's folder
    folder: Path  # where to write
    hosts: Mapping[str, str]  # address -> host, of the whole run
    captured: Collection[str]  # hosts whose messages are in the table

    def run(self) -> dict[str, pa.Table]:
        """Write one file, in order of time. The table of transfers is not returned: it is big."""
        own = pq.read_table(self.messages / part_name(self.host))
        sent = own.filter(pc.equal(own.column("direction"), "out"))
        receivers = {self.hosts.get(address, "") for address in sent.column("dst").unique().to_pylist()}
        addresses = pa.array(sent.column("src").unique().to_pylist(), pa.string())
        arrived = [
            pq.read_table(
                self.messages / part_name(receiver),
                filters=(pc.field("direction") == "in") & pc.field("src").isin(addresses),
            )
            for receiver in sorted(receivers.intersection(self.captured))
        ]
        matched = match(sent, pa.concat_tables([MESSAGES.empty_table(), *arrived]), self.hosts, self.captured)
        strangers = [address for address, host in self.hosts.items() if host in self.captured]
        from_elsewhere = own.filter(
            pc.and_(
                pc.equal(own.column("direction"), "in"),
                pc.invert(pc.is_in(own.column("src"), value_set=pa.array(strangers, pa.string()))),
            )
        )
        others = match(MESSAGES.empty_table(), from_elsewhere, self.hosts, self.captured)
        found = pa.concat_tables([matched, others]).sort_by("t_ns")
        path = self.folder / part_name(self.host)
        pq.write_table(found, path, compression=COMPRESSION, row_group_size=ROW_GROUP_ROWS)
        return {}


def match(sent: pa.Table, arrived: pa.Table, hosts: Mapping[str, str], captured: Collection[str]) -> pa.Table:
    """Join rows of MESSAGES seen leaving and seen coming into rows of TRANSFERS, in no order.

    hosts: address -> host. captured: the hosts whose captures were read, so that what is not in `arrived`
    did not come.
    """
    left, right = _pairs(sent, arrived)
    out, in_ = sent.take(left), arrived.take(right)  # null rows where one side did not see it
    shared = {name: pc.coalesce(out.column(name), in_.column(name)) for name in _SHARED if name not in _LISTS}
    for name in _LISTS:  # pc.coalesce knows no lists
        shared[name] = _either(sent.column(name), arrived.column(name), left, right)
    names = {side: _names(shared[side], hosts) for side in ("src", "dst")}
    complete = in_.column("t_complete_ns")
    seen = pc.is_in(names["dst"], value_set=pa.array(sorted(captured), pa.string()))
    fate = pc.if_else(pc.is_valid(complete), "arrived", pc.if_else(seen, "lost", "unseen"))
    columns = shared | {
        "t_ns": pc.coalesce(out.column("t_first_ns"), in_.column("t_first_ns")),
        "sender": names["src"],
        "receiver": names["dst"],
        "t_sent_ns": out.column("t_first_ns"),
        "t_left_ns": out.column("t_complete_ns"),
        "t_arrived_ns": in_.column("t_first_ns"),
        "t_complete_ns": complete,
        "fate": fate,
    }
    return pa.table([columns[name].cast(TRANSFERS.field(name).type) for name in TRANSFERS.names], TRANSFERS)


_LISTS = tuple(field.name for field in TRANSFERS if pa.types.is_list(field.type))


def _pairs(sent: pa.Table, arrived: pa.Table) -> tuple[pa.Array, pa.Array]:
    """For each message its row in `sent` and in `arrived`; null where it has none."""
    sides = [
        pa.table({name: table.column(name) for name in _KEY} | {row: pa.array(np.arange(table.num_rows))})
        for table, row in ((sent, "left"), (arrived, "right"))
    ]
    joined = sides[0].join(sides[1], list(_KEY), join_type="full outer").combine_chunks()
    return joined.column("left").combine_chunks(), joined.column("right").combine_chunks()


def _either(first: pa.ChunkedArray, second: pa.ChunkedArray, left: pa.Array, right: pa.Array) -> pa.Array:
    """The value of the first table's row, or of the second's where the first has none."""
    both = pa.concat_arrays([*first.chunks, *second.chunks])
    there = pc.fill_null(pc.take(pc.is_valid(first), left), fill_value=False)
    return both.take(pc.if_else(there, left, pc.add(right, len(first))))


def _names(addresses: pa.ChunkedArray, hosts: Mapping[str, str]) -> pa.Array:
    known = pa.array(list(hosts), pa.string())
    return pa.array(list(hosts.values()), pa.string()).take(
        pc.index_in(pa.chunked_array(addresses).combine_chunks(), value_set=known)
    )


def tasks(run: RunDirectory, hosts: Mapping[str, str], folder: Path) -> list[MatchTransfers]:
    """One task for each host whose messages were extracted."""
    messages = run.table("messages")
    there = [name for name in hosts.values() if (messages / part_name(name)).is_file()]
    return [MatchTransfers(name, messages, folder, hosts, frozenset(there)) for name in there]


def read(
    run: RunDirectory,
    times: TimeRange | None = None,
    columns: Collection[str] = tuple(TRANSFERS.names),
    chosen: ds.Expression | None = None,
) -> pa.Table:
    """Transfers whose `t_ns` lies within `times` and for which `chosen` holds, in order of time.

    Only the row groups that meet the times are read. Raises InputError if the run was not analysed.
    """
    table = run.table("transfers")
    if not table.is_dir():
        raise InputError(str(run.path), None, "", "has no table of transfers yet: `cutset analyze` makes it")
    wanted = [
        condition
        for condition in (
            chosen,
            None if times is None or times.first_ns is None else pc.field("t_ns") >= times.first_ns,
            None if times is None or times.end_ns is None else pc.field("t_ns") < times.end_ns,
        )
        if condition is not None
    ]
    whole = wanted[0] if wanted else None
    for condition in wanted[1:]:
        whole = whole & condition
    needed = list(dict.fromkeys((*columns, "t_ns")))
    found = ds.dataset(table, TRANSFERS, format="parquet").to_table(columns=needed, filter=whole)
    return found.sort_by("t_ns").select(list(columns))
