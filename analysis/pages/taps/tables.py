"""The tables of the page of captures: silences, resets, retransmissions, messages, services and pairs."""

from dataclasses import dataclass
from typing import Final

from analysis.pages.report.formatting import number, scaled
from analysis.pages.report.tables import Column, PageTable, label, quantity, table
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
    """Return the tables in the order of the page; some may have no rows."""
    zero_ns = asked.case.zero_ns

    def since(title: str, of: str) -> Column:
        return quantity(title, of, lambda t_ns: "" if t_ns is None else f"{(t_ns - zero_ns) / 1e9:.3f}")

    ends = (
        label("capture", "capture"),
        label("client", lambda row: f"{row['client']} port {row['client_port']}"),
        label("server", lambda row: f"{row['server']} port {row['server_port']}"),
    )
    pairs = (label("capture and pair", "name"), _bytes("forward", "forward"), _bytes("backward", "backward"))
    services = (
        label("capture", "capture"),
        label("client", "client"),
        label("server", lambda row: f"{row['server']} port {row['server_port']}"),
        _count("connections", "n"),
        _bytes("to server", "to_server"),
        _bytes("to client", "to_client"),
        quantity("round trip, ms", "rtt", _thousandths),
        _count("retransmitted", "again"),
        _count("reset", "resets"),
        quantity("longest silence, s", "silent", _thousandths),
    )
    silences = (
        *ends,
        since("from, s", "from_ns"),
        since("to, s", "to_ns"),
        quantity("length, s", "silence_s", _thousandths),
        _count("tries", "tries", "segments sent meanwhile that brought nothing new"),
    )
    resets = (
        *ends,
        since("opened, s", "start_ns"),
        since("reset, s", "closed_ns"),
        label("by", "closed_by"),
        label("answered", lambda row: "yes" if row["answered"] else "no"),
    )
    storms = (
        *ends,
        _count("retransmitted to server", "retransmissions_to_server"),
        _count("retransmitted to client", "retransmissions_to_client"),
        _count("of packets", "packets"),
    )
    messages = (
        label("capture", "capture"),
        label("message", "kind"),
        _count("messages", "n"),
        _bytes("bytes", "size"),
        _count("retransmitted", "again"),
        since("first, s", "first_ns"),
        since("last, s", "last_ns"),
    )
    least = number(asked.case.tables.silence_s)
    asking: list[tuple[str, str, tuple[Column, ...], str, str]] = [
        ("Silences", f"Silences of {least} s or longer", silences, "silences",
         "tries > 0 DESC, silence_s DESC"),
        ("Resets", "Connections that were reset", resets, _RESETS, "closed_ns"),
        ("Retransmission storms", f"Connections with at least {STORM} segments retransmitted", storms,
         _STORMS, "again DESC"),
        ("TCP services", "Connections by client and server", services, _SERVICES,
         "to_server + to_client DESC"),
        ("Who talks to whom", "Bytes on the wire between addresses, all protocols", pairs, _PAIRS,
         "coalesce(forward, 0) + coalesce(backward, 0) DESC"),
    ]  # fmt: skip
    if asked.case.tables.decoding is not None:
        asking.insert(3, ("Messages", "Messages by type", messages, _MESSAGES, "n DESC"))
    return [_shown(asked, *each) for each in asking]


_KIND: Final = r"""regexp_replace(type, '(\s*[\(\[]| \S*[=/:]| \d).*', '')"""
"""The first words of a message's type, since tshark's descriptions also have names and numbers."""
_AGAIN: Final = "retransmissions_to_server + retransmissions_to_client"
_MESSAGES: Final = f"""(SELECT capture, {_KIND} AS kind, count(*) AS n, sum(length) AS size,
    count(*) FILTER (retransmitted) AS again, min(t_first_ns) AS first_ns, max(t_first_ns) AS last_ns
    FROM messages GROUP BY ALL)"""  # noqa: S608
_SERVICES: Final = f"""(SELECT capture, client, server, server_port, count(*) AS n,
    sum(bytes_to_server) AS to_server, sum(bytes_to_client) AS to_client, median(round_trip_ms) AS rtt,
    sum({_AGAIN}) AS again, count(*) FILTER (closed_how = 'RST') AS resets, max(silence_s) AS silent
    FROM connections GROUP BY ALL)"""  # noqa: S608
_PAIRS: Final = """(SELECT name, sum(bytes_per_s * bin_s) FILTER (direction = 'forward') AS forward,
    sum(bytes_per_s * bin_s) FILTER (direction = 'backward') AS backward
    FROM throughput WHERE scope = 'pair' GROUP BY name)"""
_RESETS: Final = "(SELECT * FROM connections WHERE closed_how = 'RST')"
_STORMS: Final = f"""(SELECT *, packets_to_server + packets_to_client AS packets, {_AGAIN} AS again
    FROM connections WHERE {_AGAIN} >= {STORM})"""  # noqa: S608


def _shown(  # noqa: PLR0917 (independent parameters)
    asked: TapQuestions, title: str, caption: str, columns: tuple[Column, ...], of: str, order: str
) -> ShownTable:
    rows = asked.ask(f"SELECT * FROM {of} ORDER BY {order} LIMIT {ROWS_MAX}")  # noqa: S608
    [count] = asked.ask(f"SELECT count(*) AS n FROM {of}")  # noqa: S608
    shown = table(title.lower().replace(" ", "-"), columns, rows)
    return ShownTable(title, caption, shown, count["n"] - len(rows))


def _thousandths(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _bytes(title: str, of: str) -> Column:
    return quantity(
        title, lambda row: None if row[of] is None else float(row[of]), lambda size: scaled(size, "B")
    )


def _count(title: str, of: str, help: str = "") -> Column:  # noqa: A002 - as in HTML
    return quantity(title, lambda row: int(row[of]), "{:,}".format, help)
