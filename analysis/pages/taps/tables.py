"""The tables of the page of captures: silences, resets, retransmission storms, services and pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from analysis.pages.report.formatting import number, scaled
from analysis.pages.report.tables import Column, PageTable, TableCell, figure, text_cell
from analysis.pages.taps.spooling import TapQuestions

ROWS_MAX: Final = 100
"""Rows of each table; the others are counted."""
STORM: Final = 10
"""Retransmissions of a connection from which it is listed."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table with its heading. more: rows left out."""

    title: str
    caption: str
    table: PageTable
    more: int


def tables(asked: TapQuestions) -> list[ShownTable]:
    zero_ns = asked.case.zero_ns

    def since(name: str) -> Any:
        return lambda row: figure(
            "" if row[name] is None else f"{(row[name] - zero_ns) / 1e9:.3f}", row[name]
        )

    ends = (
        Column("capture", lambda row: text_cell(row["capture"])),
        Column("client", lambda row: text_cell(f"{row['client']} port {row['client_port']}")),
        Column("server", lambda row: text_cell(f"{row['server']} port {row['server_port']}")),
    )
    pairs = (
        Column("capture and pair", lambda row: text_cell(row["name"])),
        Column("forward", _bytes("forward"), numeric=True),
        Column("backward", _bytes("backward"), numeric=True),
    )
    services = (
        Column("capture", lambda row: text_cell(row["capture"])),
        Column("client", lambda row: text_cell(row["client"])),
        Column("server", lambda row: text_cell(f"{row['server']} port {row['server_port']}")),
        Column("connections", _count("n"), numeric=True),
        Column("to server", _bytes("to_server"), numeric=True),
        Column("to client", _bytes("to_client"), numeric=True),
        Column("round trip, ms", _round_trip, numeric=True),
        Column("sent again", _count("again"), numeric=True),
        Column("reset", _count("resets"), numeric=True),
        Column("longest silence, s", lambda row: figure(f"{row['silent']:.3f}", row["silent"]), numeric=True),
    )
    silences = (
        *ends,
        Column("from, s", since("from_ns"), numeric=True),
        Column("to, s", since("to_ns"), numeric=True),
        Column("length, s", lambda row: figure(f"{row['silence_s']:.3f}", row["silence_s"]), numeric=True),
        Column(
            "tries", _count("tries"), numeric=True, help="segments sent meanwhile that brought nothing new"
        ),
    )
    resets = (
        *ends,
        Column("opened, s", since("start_ns"), numeric=True),
        Column("reset, s", since("closed_ns"), numeric=True),
        Column("by", lambda row: text_cell(row["closed_by"])),
        Column("answered", lambda row: text_cell("yes" if row["answered"] else "no")),
    )
    storms = (
        *ends,
        Column("sent again to server", _count("retransmissions_to_server"), numeric=True),
        Column("sent again to client", _count("retransmissions_to_client"), numeric=True),
        Column("of packets", _count("packets"), numeric=True),
    )
    messages = (
        Column("capture", lambda row: text_cell(row["capture"])),
        Column("message", lambda row: text_cell(row["kind"])),
        Column("messages", _count("n"), numeric=True),
        Column("bytes", _bytes("size"), numeric=True),
        Column("sent again", _count("again"), numeric=True),
        Column("first, s", since("first_ns"), numeric=True),
        Column("last, s", since("last_ns"), numeric=True),
    )
    of_messages = f"""(SELECT capture, {_KIND} AS kind, count(*) AS n, sum(length) AS size,
        count(*) FILTER (retransmitted) AS again, min(t_first_ns) AS first_ns, max(t_first_ns) AS last_ns
        FROM messages GROUP BY ALL)"""  # noqa: S608
    of_services = f"""(SELECT capture, client, server, server_port, count(*) AS n,
        sum(bytes_to_server) AS to_server, sum(bytes_to_client) AS to_client, median(round_trip_ms) AS rtt,
        sum({_AGAIN}) AS again, count(*) FILTER (closed_how = 'RST') AS resets, max(silence_s) AS silent
        FROM connections GROUP BY ALL)"""  # noqa: S608
    of_pairs = """(SELECT name, sum(bytes_per_s * bin_s) FILTER (direction = 'forward') AS forward,
        sum(bytes_per_s * bin_s) FILTER (direction = 'backward') AS backward
        FROM throughput WHERE scope = 'pair' GROUP BY name)"""
    of_resets = "(SELECT * FROM connections WHERE closed_how = 'RST')"
    of_storms = f"""(SELECT *, packets_to_server + packets_to_client AS packets, {_AGAIN} AS again
        FROM connections WHERE {_AGAIN} >= {STORM})"""  # noqa: S608
    least = number(asked.case.tables.silence_s)
    asking: list[tuple[str, str, tuple[Column, ...], str, str]] = [
        ("Silences", f"Silences of {least} s or longer", silences, "silences",
         "tries > 0 DESC, silence_s DESC"),
        ("Resets", "Connections that were reset", resets, of_resets, "closed_ns"),
        ("Retransmission storms", f"Connections with at least {STORM} segments sent again", storms,
         of_storms, "again DESC"),
        ("TCP services", "Connections by client and server", services, of_services,
         "to_server + to_client DESC"),
        ("Who talks to whom", "Bytes on the wire between addresses, all protocols", pairs, of_pairs,
         "coalesce(forward, 0) + coalesce(backward, 0) DESC"),
    ]  # fmt: skip
    if asked.case.tables.decoding is not None:
        asking.insert(3, ("Messages", "Messages by type", messages, of_messages, "n DESC"))
    return [_shown(asked, *each) for each in asking]


_KIND: Final = r"""regexp_replace(type, '(\s*[\(\[]| \S*[=/:]| \d).*', '')"""
"""The first words of a message's type, since tshark's descriptions also have names and numbers."""
_AGAIN: Final = "retransmissions_to_server + retransmissions_to_client"


def _shown(  # noqa: PLR0917 (independent parameters)
    asked: TapQuestions, title: str, caption: str, columns: tuple[Column, ...], of: str, order: str
) -> ShownTable:
    rows = asked.ask(f"SELECT * FROM {of} ORDER BY {order} LIMIT {ROWS_MAX}")  # noqa: S608
    [count] = asked.ask(f"SELECT count(*) AS n FROM {of}")  # noqa: S608
    key = title.lower().replace(" ", "-")
    cells = tuple(tuple(column.cell(row) for column in columns) for row in rows)
    return ShownTable(title, caption, PageTable(key, columns, cells), count["n"] - len(rows))


def _round_trip(row: Mapping[str, Any]) -> TableCell:
    return figure("" if row["rtt"] is None else f"{row['rtt']:.3f}", row["rtt"])


def _bytes(name: str) -> Any:
    return lambda row: _amount(row[name])


def _amount(value: float | None) -> TableCell:
    return figure("" if value is None else scaled(float(value), "B"), None if value is None else float(value))


def _count(name: str) -> Any:
    def cell(row: Mapping[str, Any]) -> TableCell:
        return figure(f"{int(row[name]):,}", int(row[name]))

    return cell
