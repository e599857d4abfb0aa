"""Scapy's layers and the nodes' codec agree on every message, and on streams in any segmentation."""

import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP
from scapy.packet import Packet, Raw, split_bottom_up, split_top_down
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession
from scapy.supersocket import StreamSocket

from analysis.messages.scapy_layers import layers
from node.core.framing import HEADER_FIELDS, frames_in
from node.core.message_layout import MessageLayout
from node.protocols.sprinkler.messages import CODEC, Subscribe
from tests.analysis.capture.pcap.captures import ACK, SYN, at_intervals, segment, write_pcap
from tests.analysis.messages.examples import encoded, message, message_of

PORT = 7000
SPRINKLER = layers("sprinkler")
NAMES = {"name": "name_", "payload": "payload_"}  # which a Scapy packet has already
EVERY_TYPE = [pytest.param(layout, id=layout.name) for layout in CODEC.by_type.values()]


@pytest.fixture(autouse=True)
def bound() -> Iterator[None]:
    SPRINKLER.bind(PORT)
    yield
    for end in ({"sport": PORT}, {"dport": PORT}):
        split_bottom_up(TCP, SPRINKLER.stream, **end)
    split_top_down(TCP, SPRINKLER.stream, dport=PORT)


def read(data: bytes) -> Packet:
    """Dissect a segment's content with Scapy."""
    return SPRINKLER.stream(data)


def decoded(data: bytes) -> Any:
    (frame,) = frames_in(data)
    return CODEC.decode(frame)


def value(packet: Packet, name: str) -> Any:
    return packet.getfieldval(NAMES.get(name, name))


def rebuilt(packet: Packet) -> bytes:
    """Rebuild a packet from the fields' values alone, without the length."""
    header = {name for name, *_ in HEADER_FIELDS}
    fields = {name: content for name, content in packet.fields.items() if name not in header}
    for name, content in fields.items():
        if isinstance(content, list) and content and isinstance(content[0], Packet):
            fields[name] = [type(row)(**row.fields) for row in content]
    return bytes(type(packet)(**fields))


@pytest.mark.parametrize("layout", EVERY_TYPE)
@settings(max_examples=12)  # of each type
@given(data=st.data())
def test_scapy_reads_what_the_codec_writes_and_builds_it_again(
    layout: MessageLayout, data: st.DataObject
) -> None:
    sent = data.draw(message_of(layout))
    (packet,) = read(encoded(sent)).messages
    assert packet.name == layout.name
    for field in layout.fields:
        assert value(packet, field.name) == getattr(sent, field.name)
    if layout.row is not None:
        rows = [
            tuple(value(row, field.name) for field in layout.row.fields)
            for row in value(packet, layout.tail_name)
        ]
        assert rows == [
            tuple(getattr(row, field.name) for field in layout.row.fields)
            for row in getattr(sent, layout.tail_name)
        ]
    elif layout.tail is not None:
        numbers = [number for each in layout.tail.numbers for number in getattr(packet, each.name)]
        content = value(packet, layout.tail_name)
        content = content.encode() if isinstance(content, str) else content
        tail = getattr(sent, layout.tail_name)
        assert struct.pack(f">{len(numbers)}I", *numbers) + content == (
            tail.encode() if isinstance(tail, str) else tail
        )
    assert decoded(rebuilt(packet)) == sent


def test_a_message_is_built_from_its_fields_with_its_length_and_values_by_name() -> None:
    sent = SPRINKLER.Hello(role="client", incarnation=3, name_="r2/client-0")
    assert decoded(bytes(sent)) == CODEC.by_name["HELLO"].message(2, 3, "r2/client-0")
    assert "role      = client" in SPRINKLER.Hello(bytes(sent)).show(dump=True)


def test_a_packet_with_a_message_goes_to_the_port_and_is_dissected_from_it() -> None:
    notify = SPRINKLER.Notify(counters=[SPRINKLER.Counter(cnt=4)])
    stream = SPRINKLER.stream(messages=[SPRINKLER.Subscribe(stream=2, cnt=5), notify])
    got = IP(bytes(IP(src="10.0.0.1", dst="10.0.0.2") / TCP() / stream))
    assert got[TCP].dport == PORT
    assert got[SPRINKLER.Subscribe].cnt == 5
    assert got[SPRINKLER.Notify].counters[0].cnt == 4


def test_undecodable_bytes_stay_raw() -> None:
    good = encoded(Subscribe(1, 2))
    got = read(good + b"GET / HTTP/1.1\r\n")
    assert [one.name for one in got.messages] == ["SUBSCRIBE"]
    assert got[Raw].load == b"GET / HTTP/1.1\r\n"


def test_an_unknown_type_is_a_message_of_its_own() -> None:
    got = read(struct.pack(">IBBH", 7, 1, 200, 0) + b"abc" + encoded(Subscribe(1, 2)))
    assert [one.name for one in got.messages] == ["unknown", "SUBSCRIBE"]
    assert got.messages[0].body == b"abc"


def test_a_batch_with_a_wrong_count_of_sizes_is_dissected_safely() -> None:
    head = CODEC.by_name["EVENTS"].head.pack(0, 0, 1, 1, 2**32 - 1, 0, 0, 0)
    (got,) = read(struct.pack(">IBBH", 4 + len(head) + 3, 1, 5, 0) + head + b"abc").messages
    assert got.sizes == []
    assert value(got, "payload") == b"abc"


def sniffed(path: Path, segments: Sequence[tuple[int, bytes]], isn: int = 1000) -> list[Packet]:
    """Return the messages from Scapy's TCP session for a connection's segments (stream offset, payload)."""
    frames = [segment(isn, flags=SYN)]
    frames += [segment(isn + 1 + offset, payload, flags=ACK) for offset, payload in segments]
    write_pcap(path, at_intervals(frames))
    packets = sniff(offline=str(path), session=TCPSession)
    return [
        one for packet in packets if SPRINKLER.stream in packet for one in packet[SPRINKLER.stream].messages
    ]


def cut(data: bytes, places: Sequence[int]) -> list[tuple[int, bytes]]:
    """Cut the data into segments that end at these places."""
    ends = [*sorted({place % len(data) for place in places} - {0}), len(data)]
    return [(start, data[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


@given(sent=st.lists(message(), min_size=1, max_size=5), places=st.lists(st.integers(0, 10_000), max_size=12))
def test_a_session_gives_whole_messages_however_the_stream_is_cut(
    sent: list[Any], places: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = b"".join(map(encoded, sent))
    got = sniffed(tmp_path_factory.mktemp("cut") / "a.pcap", cut(data, places))
    assert [decoded(bytes(one)) for one in got] == sent


@pytest.mark.parametrize("size", [10, 24, 40, 72])
def test_retransmissions_give_no_duplicates(tmp_path: Path, size: int) -> None:
    sent = [Subscribe(1, number) for number in range(12)]
    data = b"".join(map(encoded, sent))
    segments = [(at, data[at : at + size]) for at in range(0, len(data), size)]
    twice = [each for one in segments for each in (one, one)]
    assert [one.cnt for one in sniffed(tmp_path / "a.pcap", twice)] == list(range(12))


def test_reordered_segments_are_put_in_order(tmp_path: Path) -> None:
    data = b"".join(encoded(Subscribe(1, number)) for number in range(3))
    segments = [(0, data[:10]), (30, data[30:]), (10, data[10:30])]
    assert [one.cnt for one in sniffed(tmp_path / "a.pcap", segments)] == [0, 1, 2]


def test_bytes_after_an_invalid_header_are_raw(tmp_path: Path) -> None:
    isn, data = 1000, encoded(Subscribe(1, 2)) + b"GET / HTTP/1.1\r\n"
    write_pcap(tmp_path / "a.pcap", at_intervals([segment(isn, flags=SYN), segment(isn + 1, data)]))
    last = sniff(offline=str(tmp_path / "a.pcap"), session=TCPSession)[-1]
    assert last[Raw].load == b"GET / HTTP/1.1\r\n"


def test_messages_are_replayed_over_a_socket() -> None:
    ends = socket.socketpair()
    with ends[0], ends[1]:
        ends[1].settimeout(10)
        ours, theirs = (StreamSocket(end, SPRINKLER.stream) for end in ends)
        ours.send(SPRINKLER.stream(messages=[SPRINKLER.Hello(name_="r2/x"), SPRINKLER.Subscribe(cnt=4)]))
        assert [one.name for one in theirs.recv().messages] == ["HELLO", "SUBSCRIBE"]
        again = encoded(Subscribe(1, 2))
        ends[0].sendall(again + again[:5])
        assert [bytes(one) for one in theirs.recv().messages] == [again]
        ends[0].sendall(again[5:])
        assert [bytes(one) for one in theirs.recv().messages] == [again]


def test_no_message_has_a_field_that_scapy_cannot_hold() -> None:
    fields = {field.name for made in SPRINKLER.messages.values() for field in made.fields_desc}
    assert [name for name in fields if hasattr(Packet, name)] == []
