"""A message within others is seen as what it is, and in what it came: everywhere where messages are read."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.pcap.streams import HostCapture, extract_messages
from analysis.inspect.packets.dissect import CapturedBytes, dissect
from analysis.messages import label as labels
from analysis.messages.label import label
from analysis.messages.scapy_layers import layers_of
from analysis.messages.wireshark import dissector
from analysis.schemas import DECODING, MESSAGES
from node.core.message_layout import ADDRESS, NESTED_MAX, SEQ, Codec, Field, MessageLayout, TailField
from tests.analysis.messages.tshark import PORT, SYSTEM, Tshark, connection, in_pieces

Count = Annotated[int, Field("I", "events", "how many")]


@dataclass(frozen=True, slots=True)
class Letter:
    """Events."""

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+count}]")

    key: Annotated[int, Field("K", "", "whose")]
    stream: Annotated[int, Field("I", "", "which")]
    first_seq: Annotated[int, Field("Q", SEQ, "the first one")]
    count: Count
    payload: Annotated[bytes, TailField("bytes", "the events")]


@dataclass(frozen=True, slots=True)
class Hello:
    """Nothing more."""

    number: Annotated[int, Field("I", "", "which")]


@dataclass(frozen=True, slots=True)
class Onward:
    """To where a key leads."""

    reads: ClassVar = ("{key}",)

    key: Annotated[int, Field("K", "", "where to")]
    message: Annotated[Any, TailField("message", "what")]


@dataclass(frozen=True, slots=True)
class Detour:
    """To a node by way of another one."""

    reads: ClassVar = ("for {target}",)

    source: Annotated[int, Field("I", ADDRESS, "whose it is")]
    target: Annotated[int, Field("I", ADDRESS, "for whom")]
    message: Annotated[Any, TailField("message", "what")]


CODEC = Codec(
    [MessageLayout(Letter, 1), MessageLayout(Hello, 2), MessageLayout(Onward, 3), MessageLayout(Detour, 4)]
)
u31, u32, keys = st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**128 - 1)
letters = st.builds(Letter, keys, u31, st.integers(1, 2**50), u31, st.binary(max_size=40))
plain = st.one_of(letters, st.builds(Hello, u32))


def wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.builds(Onward, keys, inner), st.builds(Detour, u32, u32, inner))


nested = st.one_of(plain, wrapped(plain), wrapped(wrapped(plain)))


def encoded(messages: list[Any]) -> bytes:
    return b"".join(bytes(part) for each in messages for part in CODEC.encode(each))


def inmost(message: Any) -> Any:
    while hasattr(message, "message"):
        message = message.message
    return message


def around(message: Any) -> list[Any]:
    found = []
    while hasattr(message, "message"):
        found.append(message)
        message = message.message
    return found


def tables(folder: Path, data: bytes, size: int = 1000) -> dict[str, list[dict[str, Any]]]:
    capture = connection(folder / "a.pcap", in_pieces(data, size))
    found: dict[str, list[Any]] = {"messages": [], "decoding": []}
    host = HostCapture(str(capture), "r0-node-0", "10.0.0.2", PORT)
    extract_messages(host, CODEC, lambda name, rows: found.setdefault(name, []).append(rows))
    schemas = {"messages": MESSAGES, "decoding": DECODING}
    return {name: pa.Table.from_batches(found[name], schemas[name]).to_pylist() for name in schemas}


@given(st.lists(nested, min_size=1, max_size=8), st.sampled_from([7, 100]))
def test_the_table_of_messages_has_the_inmost_message_and_what_it_came_in(
    tmp_path_factory: Any, messages: list[Any], size: int
) -> None:
    found = tables(tmp_path_factory.mktemp("nested"), encoded(messages), size)
    for message, row in zip(messages, found["messages"], strict=True):
        inner = inmost(message)
        assert row["type"] == type(inner).__name__.upper()
        assert (row["within"] or "").split() == [type(each).__name__.upper() for each in around(message)]
        assert row["length"] == CODEC.size_bytes(message)
        for name in ("stream", "first_seq", "count"):
            assert row[name] == getattr(inner, name, None)
        if isinstance(inner, Letter):
            assert row["key"] == inner.key.to_bytes(16, "big")
            assert row["payload_length"] == len(inner.payload)
        detours = [each for each in around(message) if isinstance(each, Detour)]
        ends = (detours[-1].source, detours[-1].target) if detours else (None, None)
        assert (row["source"], row["target"]) == ends


LETTER = Letter(0x65A1FC << 104, 3, 17, 5, b"x" * 20)
DETOUR = Detour(0x0A000001, 0x0A000203, Onward(5, LETTER))


@pytest.mark.parametrize(
    ("body", "malformed"),
    [
        (bytes(16) + b"\x09", 1),  # of no type
        (bytes(16), 1),  # nothing in it
        (bytes(16) + b"\x02" + bytes(3), 1),  # too short for its type
        ((bytes(16) + b"\x03") * (NESTED_MAX + 1) + b"\x02" + bytes(4), 1),  # too deep
        ((bytes(16) + b"\x03") * (NESTED_MAX - 1) + bytes(16) + b"\x02" + bytes(4), 0),
    ],
)
def test_an_envelope_without_a_message_is_malformed_and_later_ones_are_not(
    tmp_path: Path, body: bytes, malformed: int
) -> None:
    frame = encoded([Hello(1)])
    bad = (len(body) + 4).to_bytes(4, "big") + frame[4:5] + b"\x03" + frame[6:8] + body
    found = tables(tmp_path, bad + frame)
    assert found["decoding"][0]["malformed"] == malformed
    assert len(found["messages"]) == 2 - malformed


def test_a_nested_message_reads_as_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(labels, "codec_of", lambda system: CODEC)
    rows = tables(tmp_path, encoded([DETOUR, Onward(7, Hello(1)), LETTER]))["messages"]
    assert [label(row, "toys") for row in rows] == [
        "DETOUR for 10.0.2.3: ONWARD: LETTER s3 [17..21]",
        "ONWARD: HELLO",
        "LETTER s3 [17..21]",
    ]


def test_wireshark_shows_it(tmp_path: Path) -> None:
    script = tmp_path / "toy.lua"
    script.write_text(dissector(CODEC, SYSTEM, PORT))
    deep = Hello(2)
    for _ in range(NESTED_MAX + 1):
        deep = Onward(1, deep)
    capture = connection(tmp_path / "a.pcap", in_pieces(encoded([DETOUR, LETTER, deep]), 33))
    detour, letter, refused = Tshark(script).messages(capture)
    assert detour.reads == "DETOUR for 10.0.2.3: ONWARD 000000: LETTER s3 [17..21]"
    assert letter.reads == "LETTER s3 [17..21]"
    assert detour.fields["stream"] == ["3"]
    assert detour.fields["first_seq"] == ["17"]
    assert detour.fields["target"] == ["10.0.2.3"]
    assert detour.fields["type"] == ["4", "3", "1"]
    assert detour.experts == letter.experts == []
    assert refused.experts == [f"more than {NESTED_MAX} messages within each other"]


@given(st.lists(nested, min_size=1, max_size=5))
def test_scapy_reads_and_writes_it(messages: list[Any]) -> None:
    toys, data = layers_of(CODEC, "toy"), encoded(messages)
    seen = toys.stream(data).messages
    assert b"".join(map(bytes, seen)) == data
    for packet, message in zip(seen, messages, strict=True):
        assert bytes(built(toys, message)) == encoded([message])
        seen_inside, inside = packet, inmost(message)
        for _ in around(message):
            seen_inside = seen_inside.message
        assert type(seen_inside).__name__ == type(inside).__name__
        if isinstance(inside, Letter):
            letter = (seen_inside.stream, seen_inside.first_seq, seen_inside.payload_)
            assert letter == (inside.stream, inside.first_seq, inside.payload)


def built(toys: Any, message: Any) -> Any:
    values = {each.name: getattr(message, each.name) for each in fields(message)}
    if "message" in values:
        values["message"] = built(toys, message.message)
    if "payload" in values:
        values["payload_"] = values.pop("payload")
    return getattr(toys, type(message).__name__)(**values)


def test_raw_bytes_name_its_fields() -> None:
    frame = encoded([DETOUR])
    parts = list(dissect(CapturedBytes(frame, b"\1" * len(frame)), CODEC))
    values = {part.name: part.value for part in parts}
    assert values["message.type"] == "ONWARD"
    assert values["message.message.type"] == "LETTER"
    assert values["message.message.first_seq"] == 17
    assert values["target"] == "10.0.2.3"
    assert sum(len(part.content.data) for part in parts) == len(frame)
