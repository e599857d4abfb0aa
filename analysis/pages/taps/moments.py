"""The moment around a silence: the packets of its connection, as a space-time diagram.

Between two taps of its path, packets go from tap to tap, with their delay, and lost ones end in a cross. With
one tap only, the time of each packet is known at that tap only, so the lines are level.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from analysis.capture.pcap.fields import TCP
from analysis.pages.charting.chart_model import ChartSpan
from analysis.pages.diagram.drawing import Picture, diagram_svg
from analysis.pages.diagram.message_selection import DiagramQuery, select_messages
from analysis.pages.diagram.ranks import Ranks
from analysis.pages.diagram.scene import Lifeline, Scene
from analysis.pages.taps.spooling import TapQuestions
from analysis.schemas import ARRIVED
from analysis.taps.transfers import packet_types
from topologies.drawing.palette import colour_of

BEFORE_NS: Final = 150_000_000
AFTER_NS: Final = 150_000_000
PACKETS_MAX: Final = 20_000
"""Packets around a silence that are considered; the diagram draws fewer and says so."""
_TYPES: Final = ("ACK", "DATA")
_COLOURS: Final = {
    "DATA": "answers",
    "SYN": "green",
    "SYN-ACK": "green",
    "FIN": "purple",
    "RST": "vermillion",
}
_NOTHING: Final[dict[str, Any]] = dict.fromkeys(
    ("within", "stream", "kind", "first_seq", "count", "covered", "advertised", "hops", "members")
)


class PacketRanks(Ranks):
    """Ranks of packets: acknowledgements go first, what opens and ends connections stays."""

    def label(self, row: Mapping[str, Any]) -> str:
        """Return the type of a packet with its payload."""
        return f"{row['type']} {row['payload_length']} B" if row["payload_length"] else str(row["type"])


RANKS: Final = PacketRanks("", (), _TYPES, "", _COLOURS)


def moment(asked: TapQuestions, silence: Mapping[str, Any], command: str) -> Picture | None:
    """Return the picture of a row of SILENCES; None if its connection has no packets to draw."""
    taps = asked.compared
    first, end = silence["from_ns"] - BEFORE_NS, silence["to_ns"] + AFTER_NS
    paths = [each for each in taps.crossings if silence["capture"] in {each.near.name, each.far.name}]
    rows = _between_taps(asked, silence, first, end) if paths else []
    names = [paths[0].near.name, paths[0].far.name] if rows else [silence["client"], silence["server"]]
    rows = _with_messages(asked, rows or _at_one_tap(asked, silence, first, end), first, end)
    zero_ns = taps.taps.zero_ns
    chosen = select_messages(
        rows, DiagramQuery(), zero_ns, (end - first) / 1e9, {name: name for name in names}, RANKS
    )
    if not chosen.arrows:
        return None
    error_ns = (
        taps.error_ns(names[0], names[1], silence["from_ns"])
        if paths and names[0] in taps.estimates
        else None
    )
    scene = Scene(
        title=moment_title(silence),
        from_s=(first - zero_ns) / 1e9,
        to_s=(end - zero_ns) / 1e9,
        lifelines=tuple(Lifeline(name, name, colour_of(number)) for number, name in enumerate(names)),
        arrows=tuple(chosen.arrows),
        disturbances=(
            ChartSpan("silence", (silence["from_ns"] - zero_ns) / 1e9, (silence["to_ns"] - zero_ns) / 1e9),
        ),
        left_out=chosen.left_out,
        messages=sum(len(arrow.flights) for arrow in chosen.arrows),
        command=command,
        ranks=RANKS,
        error_ms=None if error_ns is None else error_ns / 1e6,
    )
    return diagram_svg(scene)


def moment_title(silence: Mapping[str, Any]) -> str:
    """Return the ends of the connection of a row of SILENCES."""
    ends = (f"{silence[end]} port {silence[f'{end}_port']}" for end in ("client", "server"))
    return " and ".join(ends)


def _between_taps(
    asked: TapQuestions, silence: Mapping[str, Any], first: int, end: int
) -> list[dict[str, Any]]:
    return [
        _NOTHING | row
        for row in asked.ask(
            f"""SELECT t_ns, sender, receiver, src, sport, t_sent_ns, t_complete_ns, fate, retransmitted,
            type, payload_length FROM transfers WHERE t_ns BETWEEN {first} AND {end}
            AND {_of_connection(silence)}
            AND {asked.questions.literal(silence["capture"])} IN (sender, receiver)
            ORDER BY t_ns LIMIT {PACKETS_MAX}"""  # noqa: S608
        )
    ]


def _of_connection(silence: Mapping[str, Any]) -> str:
    ends = [f"('{silence[each]}', {silence[f'{each}_port']})" for each in ("client", "server")]
    there, back = f"({ends[0]}, {ends[1]})", f"({ends[1]}, {ends[0]})"
    return f"((src, sport), (dst, dport)) IN ({there}, {back})"


def _at_one_tap(
    asked: TapQuestions, silence: Mapping[str, Any], first: int, end: int
) -> list[dict[str, Any]]:
    """Return the packets of one capture as rows of TRANSFERS from address to address."""
    found = asked.ask(
        f"""SELECT t_ns, src, sport, dst, flags, payload_length FROM (SELECT t_ns, ip(src_hi, src_lo) AS src,
        sport, ip(dst_hi, dst_lo) AS dst, dport, flags, payload_length FROM packets WHERE proto = 6
        AND capture = {asked.questions.literal(silence["capture"])} AND t_ns BETWEEN {first} AND {end}
        AND {silence["client_port"]} IN (sport, dport) AND {silence["server_port"]} IN (sport, dport))
        WHERE {_of_connection(silence)} ORDER BY t_ns LIMIT {PACKETS_MAX}"""  # noqa: S608
    )
    flags, size = (np.array([row[name] for row in found], np.int64) for name in ("flags", "payload_length"))
    types = packet_types(flags, size, np.full(flags.size, TCP)).to_pylist()
    return [
        _NOTHING
        | {
            "t_ns": row["t_ns"],
            "sender": row["src"],
            "receiver": row["dst"],
            "src": row["src"],
            "sport": row["sport"],
            "t_sent_ns": row["t_ns"],
            "t_complete_ns": row["t_ns"],
            "fate": ARRIVED,
            "retransmitted": False,
            "type": type_,
            "payload_length": row["payload_length"],
        }
        for row, type_ in zip(found, types, strict=True)
    ]


def _with_messages(
    asked: TapQuestions, rows: list[dict[str, Any]], first: int, end: int
) -> list[dict[str, Any]]:
    """Name each packet that begins messages by their types, if messages are decoded."""
    if asked.case.tables.decoding is None:
        return rows
    found = asked.ask(
        f"""SELECT src, sport, t_first_ns, string_agg(type, ', ' ORDER BY stream_offset) AS types FROM
        (SELECT DISTINCT src, sport, t_first_ns, stream_offset, type FROM messages
        WHERE t_first_ns BETWEEN {first} AND {end}) GROUP BY ALL"""  # noqa: S608
    )
    types = {(row["src"], row["sport"], row["t_first_ns"]): row["types"] for row in found}
    return [
        row | {"type": types.get((row["src"], row["sport"], row["t_sent_ns"]), row["type"])} for row in rows
    ]
