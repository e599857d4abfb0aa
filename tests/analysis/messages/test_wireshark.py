"""Wireshark, with the generated dissector, shows the messages that the nodes decode."""

import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.messages.label import label
from node.core.framing import HEADER_BYTES
from node.protocols.sprinkler.messages import CODEC, Events, Hello, Publication, Refused, Subscribe
from tests.analysis.capture.pcap.captures import ACK, PSH, SYN, at_intervals, segment, snapped, write_pcap
from tests.analysis.capture.pcap.test_messages import extract
from tests.analysis.capture.pcap.test_tcpdump import NAMESPACE
from tests.analysis.messages.examples import encoded, message_of
from tests.analysis.messages.tshark import (
    SYSTEM,
    Seen,
    Tshark,
    connection,
    in_pieces,
)

IN_THE_PAPER = Events(0, 0, 2, 48210, 132, 10, 0, 0, bytes(1320))
ONE_OF_EACH = st.tuples(*(message_of(layout) for layout in CODEC.by_type.values())).map(list)


def check_same(seen: Seen, sent: Any) -> None:
    """Check that tshark shows the fields of the message."""
    layout = CODEC.by_name[_name(sent)]
    frame = encoded(sent)
    assert seen.experts == []
    assert seen.fields["length"] == [str(len(frame) - 4)]
    assert seen.fields["type"] == [str(layout.type)]
    wanted: dict[str, list[str]] = {}
    for field in layout.fields:
        wanted.setdefault(field.name, []).append(str(getattr(sent, field.name)))
    if layout.row is not None:
        for row in getattr(sent, layout.tail_name):
            for field in layout.row.fields:
                wanted.setdefault(field.name, []).append(str(getattr(row, field.name)))
    for name, values in wanted.items():
        assert seen.fields.get(name) == values
    if layout.tail is not None and layout.tail.kind == "text":
        assert seen.fields[layout.tail_name] == [getattr(sent, layout.tail_name)]
    if layout.tail is not None and layout.tail.kind == "bytes":
        numbers = [int(one) for each in layout.tail.numbers for one in seen.fields.get(each.name, [])]
        shown = "".join(seen.fields.get(layout.tail_name, [])).replace(":", "")
        tail = struct.pack(f">{len(numbers)}I", *numbers) + bytes.fromhex(shown)
        assert tail == frame[HEADER_BYTES + layout.head.size :]


def _name(sent: Any) -> str:
    return next(layout.name for layout in CODEC.by_type.values() if layout.message is type(sent))


@settings(max_examples=4)  # each starts tshark
@given(sent=ONE_OF_EACH, size=st.sampled_from([1, 7, 8, 13, 100, 1448, 65_000]))
@pytest.mark.slow
def test_every_field_of_every_message_is_shown_however_the_stream_is_cut(
    tshark: Tshark, tmp_path_factory: pytest.TempPathFactory, sent: list[Any], size: int
) -> None:
    data = b"".join(map(encoded, sent))
    capture = connection(tmp_path_factory.mktemp("cut") / "a.pcap", in_pieces(data, size))
    seen = tshark.messages(capture)
    assert len(seen) == len(sent)
    for one, wanted in zip(seen, sent, strict=True):
        check_same(one, wanted)


@settings(max_examples=3)
@given(sent=ONE_OF_EACH)
@pytest.mark.slow
def test_messages_read_the_same_in_wireshark_and_in_our_tables(
    tshark: Tshark, tmp_path_factory: pytest.TempPathFactory, sent: list[Any]
) -> None:
    known = [one for one in sent if not isinstance(one, Hello | Publication | Refused)]  # names, reasons
    data = b"".join(map(encoded, known))
    capture = connection(tmp_path_factory.mktemp("read") / "a.pcap", in_pieces(data, 500))
    rows = extract(capture)["messages"].to_pylist()
    in_wireshark = [one.reads.replace(" joining", "") for one in tshark.messages(capture)]
    assert in_wireshark == [label(row, "sprinkler") for row in rows]


def test_several_messages_in_a_segment_are_shown_in_order(tshark: Tshark, tmp_path: Path) -> None:
    data = encoded(Subscribe(2, 48209)) + encoded(IN_THE_PAPER) + encoded(Hello(2, 1, "r2/client-0"))
    capture = connection(tmp_path / "a.pcap", [(0, data[:700]), (700, data[700:])])
    assert tshark.lines(capture) == [
        "SUBSCRIBE s2 after 48209",
        "EVENTS s2 [48210..48341]; HELLO r2/client-0 client",
    ]


def framed(kind: int, body: bytes) -> bytes:
    return struct.pack(">IBBH", 4 + len(body), 1, kind, 0) + body


MALFORMED = {
    "an unknown type": (framed(77, b"abc"), "unknown message type 77"),
    "a short head": (framed(3, b"abc"), "a body of 3 bytes, its head has 12"),
    "too much": (framed(4, bytes(5)), "a body of 5 bytes, its head has 4"),
    "half a row": (framed(2, bytes(13)), "13 bytes of rows of 12 bytes"),
    "an unknown value": (framed(1, b"\x09" + bytes(8) + b"x"), "unknown role 9"),
    "an unknown value in a row": (
        framed(18, bytes(16) + struct.pack(">IBQ", 0, 7, 0) * 2),
        "unknown standing 7",
    ),
    "sizes that do not fit": (
        framed(5, CODEC.by_name["EVENTS"].head.pack(0, 0, 1, 1, 100, 0, 0, 0) + bytes(9)),
        "100 sizes in 9 bytes",
    ),
}


def test_each_malformed_message_has_one_expert_line_and_the_next_is_read(
    tshark: Tshark, tmp_path: Path
) -> None:
    good = encoded(Subscribe(1, 3))
    data = good + b"".join(bad + good for bad, _ in MALFORMED.values())
    seen = tshark.messages(connection(tmp_path / "a.pcap", in_pieces(data, 11)))
    assert [one.experts for one in seen[1::2]] == [[wanted] for _, wanted in MALFORMED.values()]
    assert {(one.reads, *one.experts) for one in seen[::2]} == {("SUBSCRIBE s1 after 3",)}


BAD_HEADERS = {
    "bad header: protocol version 9": struct.pack(">IBBH", 16, 9, 3, 0),
    "bad header: unknown flags 0x0005": struct.pack(">IBBH", 16, 1, 3, 5),
    "bad header: a length of 3 bytes": struct.pack(">IBBH", 3, 1, 3, 0),
    "bad header: a length of 16777216 bytes": struct.pack(">IBBH", 1 << 24, 1, 3, 0),
}


@pytest.mark.parametrize(("wanted", "passes"), list(zip(BAD_HEADERS, ((), ("-2",)) * 2, strict=True)))
def test_a_bad_header_has_one_expert_line_for_all_that_follows(
    tshark: Tshark, tmp_path: Path, wanted: str, passes: tuple[str, ...]
) -> None:
    data = encoded(Subscribe(1, 2)) + BAD_HEADERS[wanted] + random.Random(1).randbytes(3000)
    seen = tshark.messages(connection(tmp_path / "a.pcap", in_pieces(data, 500)), *passes)
    assert [expert for one in seen for expert in one.experts] == [wanted]
    assert seen[0].reads == "SUBSCRIBE s1 after 2"


def test_a_capture_beginning_within_a_message_is_dissected_from_the_next(
    tshark: Tshark, tmp_path: Path
) -> None:
    data = encoded(IN_THE_PAPER) * 3
    frames = [segment(5000 + at, part, flags=ACK) for at, part in in_pieces(data[400:], 900)]
    seen = tshark.messages(write_pcap(tmp_path / "a.pcap", at_intervals(frames)))
    assert [one.reads for one in seen if one.reads] == ["EVENTS s2 [48210..48341]"] * 2
    assert [one.experts for one in seen if one.experts] == []


def test_after_missing_segments_the_next_message_is_found(tshark: Tshark, tmp_path: Path) -> None:
    data = b"".join(encoded(Subscribe(1, number)) for number in range(30))
    parts = in_pieces(data, 50)
    seen = tshark.messages(connection(tmp_path / "a.pcap", parts[:2] + parts[5:]))
    assert seen[-1].reads == "SUBSCRIBE s1 after 29"
    assert [one.experts for one in seen if one.experts] == []


def test_retransmissions_are_shown_once(tshark: Tshark, tmp_path: Path) -> None:
    data = b"".join(encoded(Subscribe(1, number)) for number in range(9))
    twice = [each for one in in_pieces(data, 25) for each in (one, one)]
    seen = tshark.messages(connection(tmp_path / "a.pcap", twice))
    assert [one.reads for one in seen] == [f"SUBSCRIBE s1 after {number}" for number in range(9)]


def test_a_snapped_packet_shows_what_was_captured(tshark: Tshark, tmp_path: Path) -> None:
    whole = at_intervals([segment(1000, flags=SYN), segment(1001, encoded(IN_THE_PAPER), flags=ACK | PSH)])
    write_pcap(tmp_path / "a.pcap", [snapped(record, 14 + 20 + 20 + 8 + 20) for record in whole])
    (seen,) = tshark.messages(tmp_path / "a.pcap")
    assert seen.reads == "EVENTS s2 [48210..48341] (cut off)"
    assert seen.fields["first_seq"] == ["48210"]
    assert "argument" not in seen.fields
    assert seen.experts == []


@pytest.mark.parametrize("cut", [1, 500])
def test_complete_messages_of_a_truncated_file_are_shown(tshark: Tshark, tmp_path: Path, cut: int) -> None:
    data = encoded(Subscribe(1, 2)) + encoded(IN_THE_PAPER)
    path = connection(tmp_path / "a.pcap", [(0, data[:300]), (300, data[300:])])
    path.write_bytes(path.read_bytes()[:-cut])
    assert [one.reads for one in tshark.messages(path)] == ["SUBSCRIBE s1 after 2"]


def test_the_port_is_a_preference(tshark: Tshark, tmp_path: Path) -> None:
    frames = [
        segment(1000, flags=SYN, dst=("10.0.0.2", 7001)),
        segment(1001, encoded(Subscribe(1, 2)), flags=PSH | ACK, dst=("10.0.0.2", 7001)),
    ]
    capture = write_pcap(tmp_path / "a.pcap", at_intervals(frames))
    assert tshark.messages(capture) == []
    assert len(tshark.messages(capture, "-o", f"{SYSTEM}.port:7001")) == 1


def test_fields_have_their_unit_and_meaning(tshark: Tshark) -> None:
    command = ["tshark", "-G", "fields", "-X", f"lua_script:{tshark.script}"]
    fields = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    known = {line.split("\t")[2]: line.split("\t") for line in fields.splitlines() if f"\t{SYSTEM}." in line}
    assert known["sprinkler.reaches"][1:4] == ["Reaches (events)", "sprinkler.reaches", "FT_UINT32"]
    assert known["sprinkler.reason"][-1] == "for users"
    assert "the subscriber's own cnt (SUBSCRIBE)" in known["sprinkler.cnt"][-1]


@pytest.mark.network
def test_a_real_conversation_is_shown_as_it_was_sent(tshark: Tshark, tmp_path: Path) -> None:
    chance = random.Random(3)
    sent = [
        Events(0, 0, chance.randrange(4), chance.randrange(1, 10**9), count, 100, 0, 0, bytes(100 * count))
        for count in (chance.randrange(1, 400) for _ in range(100))
    ]
    (tmp_path / "content").write_bytes(b"".join(map(encoded, sent)))
    capture = tmp_path / "host.pcap"
    module = [sys.executable, "-m", "tests.analysis.capture.pcap.conversation"]
    command = [*NAMESPACE, *module, capture, tmp_path / "content", "1", "70000", "333"]
    subprocess.run(command, check=True, timeout=60)
    assert [one.reads for one in tshark.messages(capture) if one.reads] == [
        f"EVENTS s{one.stream} [{one.first_seq}..{one.first_seq + one.count - 1}]" for one in sent
    ]
