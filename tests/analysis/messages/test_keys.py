"""Keys of 128 bits are the same in codec, decoder, Scapy, Wireshark, raw bytes and documentation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.pcap.streams import HostCapture, extract_messages
from analysis.inspect.packets.dissect import CapturedBytes, dissect
from analysis.messages.scapy_layers import layers_of
from analysis.messages.table import markdown
from analysis.messages.wireshark import dissector
from analysis.schemas import MESSAGES
from node.core.framing import frames_in
from node.core.message_layout import Codec, Field, MessageLayout, TailField
from tests.analysis.messages.tshark import PORT, SYSTEM, Tshark, connection, in_pieces

Key = Annotated[int, Field("K", "", "where it goes", columns=("key",))]


@dataclass(frozen=True, slots=True)
class Contact:
    """A row of ROUTE."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "who")]
    address: Annotated[int, Field("I", "", "where")]


@dataclass(frozen=True, slots=True)
class Route:
    """Onwards."""

    reads: ClassVar = ("{key}", "s{stream}", "{contacts}")

    stream: Annotated[int, Field("I", "", "whose")]
    key: Key
    hops: Annotated[int, Field("H", "", "so far")]
    contacts: Annotated[tuple[Contact, ...], TailField("rows", "who else there is", Contact)]


@dataclass(frozen=True, slots=True)
class Ping:
    """Nothing."""

    hops: Annotated[int, Field("H", "", "so far")]


CODEC = Codec([MessageLayout(Route, 1), MessageLayout(Ping, 2)])
keys = st.one_of(st.integers(0, 2**128 - 1), st.sampled_from([0, 1, 2**64, 2**128 - 1]))
u16, u32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)
contacts = st.lists(st.builds(Contact, keys, u32), max_size=3).map(tuple)
routes = st.builds(Route, st.integers(0, 2**31 - 1), keys, u16, contacts)
sent = st.lists(st.one_of(routes, st.builds(Ping, u16)), min_size=1, max_size=6)


def encoded(messages: list[Any]) -> bytes:
    return b"".join(bytes(part) for each in messages for part in CODEC.encode(each))


def digits(key: int) -> str:
    return f"{key:032x}"


@given(sent)
def test_encoded_keys_decode_and_have_a_known_size(messages: list[Any]) -> None:
    data = encoded(messages)
    assert [CODEC.decode(frame) for frame in frames_in(data)] == messages
    assert sum(map(CODEC.size_bytes, messages)) == len(data)


@given(sent, st.sampled_from([1, 9, 100]))
def test_the_analysis_has_them_in_a_column(tmp_path_factory: Any, messages: list[Any], size: int) -> None:
    capture = connection(tmp_path_factory.mktemp("keys") / "a.pcap", in_pieces(encoded(messages), size))
    found: list[pa.RecordBatch] = []
    host = HostCapture(str(capture), "r0-node-0", "10.0.0.2", PORT)
    extract_messages(host, CODEC, lambda table, rows: found.append(rows) if table == "messages" else None)
    table = pa.Table.from_batches(found, MESSAGES)
    assert table.column("key").to_pylist() == [
        each.key.to_bytes(16, "big") if isinstance(each, Route) else None for each in messages
    ]
    assert table.column("stream").to_pylist() == [getattr(each, "stream", None) for each in messages]


@given(sent)
def test_scapy_reads_and_writes_them(messages: list[Any]) -> None:
    toys, data = layers_of(CODEC, "toy"), encoded(messages)
    seen = toys.stream(data).messages
    assert [getattr(each, "key", None) for each in seen] == [getattr(each, "key", None) for each in messages]
    for packet, message in zip(seen, messages, strict=True):
        if isinstance(message, Route):
            assert [row.id for row in packet.contacts] == [row.id for row in message.contacts]
            again = toys.Route(
                stream=message.stream, key=message.key, hops=message.hops,
                contacts=[toys.Contact(id=row.id, address=row.address) for row in message.contacts],
            )  # fmt: skip
            assert bytes(again) == encoded([message])


def test_wireshark_shows_all_digits_and_reads_by_the_first(tmp_path: Path) -> None:
    script = tmp_path / "toy.lua"
    script.write_text(dissector(CODEC, SYSTEM, PORT))
    low, high = 0x65A1FC << 104 | 5, 2**128 - 1
    messages = [Route(2, low, 3, (Contact(high, 1), Contact(0, 2))), Ping(1), Route(2, 0, 3, ())]
    capture = connection(tmp_path / "a.pcap", in_pieces(encoded(messages), 33))
    first, ping, last = Tshark(script).messages(capture)
    assert first.reads == "ROUTE 65a1fc s2 ffffff 000000"
    assert [each.replace(":", "") for each in first.fields["key"]] == [digits(low)]
    assert [each.replace(":", "") for each in first.fields["id"]] == [digits(high), digits(0)]
    assert (ping.reads, last.reads) == ("PING", "ROUTE 000000 s2")
    assert first.experts == last.experts == []


def test_raw_bytes_and_the_documentation_name_them() -> None:
    frame = encoded([Route(2, 77, 3, (Contact(78, 1),))])
    values = {part.name: part.value for part in dissect(CapturedBytes(frame, b"\1" * len(frame)), CODEC)}
    assert values["key"] == digits(77)
    assert values["contacts[0].id"] == digits(78)
    assert "| 4 | `key` | u128 |" in markdown(CODEC, "toy")
