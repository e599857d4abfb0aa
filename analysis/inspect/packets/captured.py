"""The packets of captures without a run, as rows to show: by time, from one tap or from tap to tap."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

import numpy as np
import pyarrow as pa

from analysis.arrays import Bools, ints
from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.streams import halves
from analysis.inspect.packets.selection import PacketSelection
from analysis.inspect.packets.wire import RowKeys
from analysis.messages.label import label
from analysis.sql.cases import CapturesCase
from analysis.sql.questions import Questions, open_questions
from analysis.taps.transfers import TYPES, packet_types
from topologies.errors import InputError
from topologies.strict import suggestion

_BY_TIME: Final = "ORDER BY t_ns"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PacketQuery:
    """The wanted packets. hosts: addresses; a packet has one as an end. ports: likewise."""

    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    lost: bool = False
    retransmitted: bool = False
    at: str | None = None
    limit: int | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """The hosts as the tables write addresses."""
        return tuple(str(ip_address(host)) for host in self.hosts)


def check(query: PacketQuery, case: CapturesCase) -> None:
    """Raise InputError for an unknown address, type or capture, or for a query that needs several taps."""
    for host in query.hosts:
        try:
            ip_address(host)
        except ValueError:
            raise InputError(f"--host {host}", None, "", "captures know addresses, as 10.0.0.1") from None
    for type_ in () if case.tables.decoding else query.types:
        if type_ not in TYPES:
            raise InputError(f"--type {type_}", None, "", f"is none of {', '.join(TYPES)}")
    taps = [tap.name for tap in case.tables.compared.taps.taps]
    if query.at is not None and query.at not in taps:
        raise InputError(f"--at {query.at}", None, "", f"no such capture{suggestion(query.at, taps)}")
    if (query.lost or query.retransmitted) and not case.tables.compared.crossings:
        option = "--lost" if query.lost else "--retransmissions"
        problem = "needs captures of two places on one path; `cutset captures` counts what one place shows"
        raise InputError(option, None, "", problem)


def packets(query: PacketQuery, case: CapturesCase) -> Iterator[list[Row]]:
    """Yield the wanted packets in pieces: `transfers` between taps, or else every packet of every tap."""
    between = bool(case.tables.compared.crossings) and query.at is None
    limit = "" if query.limit is None else f"LIMIT {query.limit + 1}"
    with open_questions([case]) as questions:
        if between:
            kinds = "fate = 'lost'" if query.lost else "", "retransmitted" if query.retransmitted else ""
            where = _where(questions, query, _among(["type"], map(questions.literal, query.types)), *kinds)
            question = f"""SELECT t_ns, sender, receiver, src, sport, dst, dport, type, payload_length, fate,
            retransmitted, t_sent_ns, t_complete_ns FROM transfers {where} {_BY_TIME} {limit}"""  # noqa: S608
            yield from (batch.to_pylist() for batch in questions.ask(question).batches)
            return
        order = _BY_TIME if len(case.tables.compared.taps.taps) > 1 and query.at is None else ""
        inner = """SELECT t_ns, capture, ip(src_hi, src_lo) AS src, sport, ip(dst_hi, dst_lo) AS dst, dport,
        proto, flags, seq, payload_length FROM packets"""
        where = _where(questions, query)
        question = f"SELECT * FROM ({inner}) {where} {order} {'' if query.types else limit}"  # noqa: S608
        left = None if query.limit is None else query.limit + 1
        for batch in questions.ask(question).batches:
            rows = _typed(batch, query)[:left]
            yield rows
            left = None if left is None else left - len(rows)
            if left == 0:
                return


def messages(query: PacketQuery, case: CapturesCase) -> Iterator[list[Row]]:
    """Yield the messages of a system in pieces; their `type` is a one-line description."""
    decoding = case.tables.decoding
    assert decoding is not None
    system = None if decoding.protocol else decoding.system
    with open_questions([case]) as questions:
        limit = "" if query.limit is None else f"LIMIT {query.limit + 1}"
        where = _where(questions, query, _among(["type"], map(questions.literal, query.types)))
        question = f"SELECT * FROM messages {where} ORDER BY t_first_ns {limit}"  # noqa: S608
        for batch in questions.ask(question).batches:
            yield [_message(row, system) for row in batch.to_pylist()]


_OF_MESSAGES: Final = ("capture", "src", "sport", "dst", "dport", "length", "retransmitted")


def _message(row: Row, system: str | None) -> Row:
    text = row["type"] if system is None else label(row, system)
    return {"t_ns": row["t_first_ns"], **{name: row[name] for name in _OF_MESSAGES}, "message": text}


def _typed(batch: pa.RecordBatch, query: PacketQuery) -> list[Row]:
    table = pa.Table.from_batches([batch])
    types = packet_types(
        ints(table, "flags"), ints(table, "payload_length"), ints(table, "proto")
    ).to_pylist()
    rows = [row | {"type": type_} for row, type_ in zip(batch.to_pylist(), types, strict=True)]
    return [row for row in rows if row["proto"] >= 0 and (not query.types or row["type"] in query.types)]


def _among(columns: Iterable[str], values: Iterable[str]) -> str:
    """Return the condition that a column has one of these values; empty without values."""
    listed = ", ".join(values)
    return f"({' OR '.join(f'{column} IN ({listed})' for column in columns)})" if listed else ""


def _where(questions: Questions, query: PacketQuery, *more: str) -> str:
    """Return the clause of the wanted ends, of the capture, and of more conditions unless they are empty."""
    conditions = (
        _among(("src", "dst"), map(questions.literal, query.addresses)),
        _among(("sport", "dport"), map(str, query.ports)),
        _among(["capture"], [] if query.at is None else [questions.literal(query.at)]),
        *more,
    )
    wanted = " AND ".join(filter(None, conditions))
    return f"WHERE {wanted}" if wanted else ""


def selection(query: PacketQuery, case: CapturesCase) -> PacketSelection:
    """Return the packets with these ends, for a capture of all taps by one clock."""
    hosts = RowKeys(halves(str(ip_address(host))) for host in query.hosts)

    def wanted(columns: Columns) -> Bools:
        found = np.ones(columns["t_ns"].size, np.bool_)
        if query.hosts:
            ends = (("src_hi", "src_lo"), ("dst_hi", "dst_lo"))
            found &= np.any([hosts.find([columns[name] for name in end]) >= 0 for end in ends], axis=0)
        if query.ports:
            found &= np.isin(columns["sport"], query.ports) | np.isin(columns["dport"], query.ports)
        return found

    taps = [tap for tap in case.tables.compared.taps.taps if query.at in {None, tap.name}]
    return PacketSelection(taps, case.tables.times, wanted)


def line(row: Row, zero_ns: int) -> str:
    """Return a packet on one line."""
    ends = " > ".join(f"{row[end]}:{row[port]}" for end, port in (("src", "sport"), ("dst", "dport")))
    if "message" in row:
        what = row["message"]
    else:
        what = f"{row['type']} {row['payload_length']} B" if row["payload_length"] else row["type"]
    if "sender" in row:
        took = _took(row)
        again = " (again)" if row["retransmitted"] else ""
        where, what = f"{row['sender']} > {row['receiver']}", f"{what}{again}"
        return f"{(row['t_ns'] - zero_ns) / 1e9:12.6f}  {where:<20}  {ends:<44}  {what:<22}  {took}".rstrip()
    return f"{(row['t_ns'] - zero_ns) / 1e9:12.6f}  {row['capture']:<20}  {ends:<44}  {what}"


def _took(row: Row) -> str:
    if row["t_sent_ns"] is None or row["t_complete_ns"] is None:
        return str(row["fate"])
    return f"{(row['t_complete_ns'] - row['t_sent_ns']) / 1e6:.3f} ms"
