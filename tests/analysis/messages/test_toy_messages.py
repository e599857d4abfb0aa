"""A message is defined once: codec, tables, Scapy, Wireshark, raw bytes and documentation all have it.

The toy messages use every feature of a definition: keys of 128 bits, named values, doubles, rows, bytes, and
nested messages.
"""

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
from analysis.messages.table import markdown
from analysis.messages.wireshark import dissector
from analysis.schemas import DECODING, MESSAGES
from node import protocols
from node.core.framing import frames_in
from node.core.message_layout import (
    ADDRESS,
    NESTED_MAX,
    SEQ,
    Codec,
    Field,
    NamedValues,
    TailField,
    numbered,
)
from node.systems import codecs
from tests.analysis.messages.tshark import PORT, SYSTEM, Seen, Tshark, connection, in_pieces

Key = Annotated[int, Field("K", "", "where it goes", columns=("key",))]
Stream = Annotated[int, Field("I", "", "which")]


class Colour(NamedValues):
    """The colour of a mark."""

    RED = 1, "stop"
    GREEN = 2, "go"


@dataclass(frozen=True, slots=True)
class Letter:
    """Events."""

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+count}]")

    key: Annotated[int, Field("K", "", "whose")]
    stream: Stream
    first_seq: Annotated[int, Field("Q", SEQ, "the first one")]
    count: Annotated[int, Field("I", "events", "how many")]
    payload: Annotated[bytes, TailField("bytes", "the events")]


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on a stream."""

    reads: ClassVar = ("{kind}", "at {cnt}", "s{stream}")

    kind: Annotated[int, Field("B", "", "its colour", Colour)]
    cnt: Annotated[int, Field("Q", "events", "where it stands")]
    stream: Stream


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere on a line."""

    reads: ClassVar = ("at {where}",)

    stream: Annotated[int, Field("H", "", "of fewer bits than others")]
    where: Annotated[float, Field("d", "", "from 0 to 1")]


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

    stream: Stream
    key: Key
    contacts: Annotated[tuple[Contact, ...], TailField("rows", "who else there is", Contact)]


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


CODEC = Codec(numbered((Letter, Mark, Onward, Detour, Route, Place)))
u31, u32 = st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1)
keys = st.integers(0, 2**128 - 1) | st.sampled_from([0, 1, 2**64, 2**128 - 1])
plain = st.one_of(
    st.builds(Letter, keys, u31, st.integers(1, 2**50), u31, st.binary(max_size=40)),
    st.builds(Mark, st.integers(1, 2), st.integers(0, 2**50), u31),
    st.builds(Route, u31, keys, st.lists(st.builds(Contact, keys, u32), max_size=3).map(tuple)),
    st.builds(Place, st.integers(0, 2**16 - 1), st.floats(0, 1)),
)


def wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.builds(Onward, keys, inner), st.builds(Detour, u32, u32, inner))


sent = st.lists(st.one_of(plain, wrapped(plain), wrapped(wrapped(plain))), min_size=1, max_size=8)


def encoded(*messages: Any) -> bytes:
    return b"".join(bytes(part) for each in messages for part in CODEC.encode(each))


def layers(message: Any) -> list[Any]:
    """Return a message and those within it, the outmost first."""
    return [message, *(layers(message.message) if hasattr(message, "message") else ())]


def tables(folder: Path, data: bytes, size: int = 1000) -> dict[str, list[dict[str, Any]]]:
    capture = connection(folder / "a.pcap", in_pieces(data, size))
    found: dict[str, list[Any]] = {"messages": [], "decoding": []}
    host = HostCapture(str(capture), "r0-node-0", "10.0.0.2", PORT)
    extract_messages(host, CODEC, lambda name, rows: found.setdefault(name, []).append(rows))
    schemas = {"messages": MESSAGES, "decoding": DECODING}
    return {name: pa.Table.from_batches(found[name], schemas[name]).to_pylist() for name in schemas}


def in_tshark(folder: Path, *messages: Any) -> list[Seen]:
    script = folder / "toy.lua"
    script.write_text(dissector(CODEC, SYSTEM, PORT))
    return Tshark(script).messages(connection(folder / "a.pcap", in_pieces(encoded(*messages), 33)))


@given(sent)
def test_encoded_messages_decode_and_have_a_known_size(messages: list[Any]) -> None:
    data = encoded(*messages)
    assert [CODEC.decode(frame) for frame in frames_in(data)] == messages
    assert sum(map(CODEC.size_bytes, messages)) == len(data)


@given(sent, st.sampled_from([7, 100]))
def test_the_table_has_the_innermost_message_and_its_envelopes(
    tmp_path_factory: Any, messages: list[Any], size: int
) -> None:
    found = tables(tmp_path_factory.mktemp("toys"), encoded(*messages), size)
    for message, row in zip(messages, found["messages"], strict=True):
        *around, inner = layers(message)
        assert row["type"] == type(inner).__name__.upper()
        assert (row["within"] or "").split() == [type(each).__name__.upper() for each in around]
        assert row["length"] == CODEC.size_bytes(message)
        for name in ("stream", "first_seq", "count", "kind", "cnt"):
            assert row[name] == getattr(inner, name, None)
        if isinstance(inner, Letter | Route):
            assert row["key"] == inner.key.to_bytes(16, "big")
        if isinstance(inner, Letter):
            assert row["payload_length"] == len(inner.payload)
        detours = [each for each in around if isinstance(each, Detour)]
        ends = (detours[-1].source, detours[-1].target) if detours else (None, None)
        assert (row["source"], row["target"]) == ends


ONWARD, MARK = b"\x03", b"\x02"


@pytest.mark.parametrize(
    ("body", "malformed"),
    [
        (bytes(16) + b"\x09", 1),
        (bytes(16), 1),
        (bytes(16) + MARK + bytes(3), 1),
        ((bytes(16) + ONWARD) * (NESTED_MAX + 1) + MARK + bytes(13), 1),
        ((bytes(16) + ONWARD) * (NESTED_MAX - 1) + bytes(16) + MARK + b"\1" + bytes(12), 0),
    ],
    ids=["of no type", "nothing in it", "too short for its type", "too deep", "just not too deep"],
)
def test_an_envelope_without_a_message_is_malformed_and_later_ones_are_not(
    tmp_path: Path, body: bytes, malformed: int
) -> None:
    frame = encoded(Mark(1, 2, 3))
    bad = (len(body) + 4).to_bytes(4, "big") + frame[4:5] + ONWARD + frame[6:8] + body
    found = tables(tmp_path, bad + frame)
    assert found["decoding"][0]["malformed"] == malformed
    assert len(found["messages"]) == 2 - malformed


LOW, HIGH = 0x65A1FC << 104, 2**128 - 1
LETTER = Letter(LOW, 3, 17, 5, b"x" * 20)
DETOUR = Detour(0x0A000001, 0x0A000203, Onward(5, LETTER))
ROUTE = Route(2, LOW | 5, (Contact(HIGH, 1), Contact(0, 2)))


def test_a_nested_message_reads_as_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(labels, "codec_of", lambda system: CODEC)
    rows = tables(tmp_path, encoded(DETOUR, LETTER))["messages"]
    assert [label(row, "toys") for row in rows] == [
        "DETOUR for 10.0.2.3: ONWARD: LETTER s3 [17..21]",
        "LETTER s3 [17..21]",
    ]


def test_wireshark_shows_every_kind_of_field(tmp_path: Path) -> None:
    deep: Any = Mark(1, 2, 3)
    for _ in range(NESTED_MAX + 1):
        deep = Onward(1, deep)
    messages = in_tshark(tmp_path, DETOUR, ROUTE, Mark(2, 7, 3), Place(3, 0.625), deep)
    detour, route, mark, place, refused = messages
    assert [each.reads for each in messages[:-1]] == [
        "DETOUR for 10.0.2.3: ONWARD 000000: LETTER s3 [17..21]",
        "ROUTE 65a1fc s2 ffffff 000000",
        "MARK green at 7 s3",
        "PLACE at 0.625",
    ]
    shown = {name: detour.fields[name] for name in ("stream", "first_seq", "target", "type")}
    assert shown == {"stream": ["3"], "first_seq": ["17"], "target": ["10.0.2.3"], "type": ["4", "3", "1"]}
    digits = [each.replace(":", "") for name in ("key", "id") for each in route.fields[name]]
    assert digits == [f"{key:032x}" for key in (LOW | 5, HIGH, 0)]
    assert (mark.fields["kind"], mark.fields["cnt"]) == (["2"], ["7"])
    assert (place.fields["where"], place.fields["place.stream"]) == (["0.625"], ["3"])
    assert [each.experts for each in messages[:-1]] == [[]] * 4
    assert refused.experts == [f"more than {NESTED_MAX} messages within each other"]


@given(sent)
def test_scapy_reads_and_writes_them(messages: list[Any]) -> None:
    toys, data = layers_of(CODEC, "toy"), encoded(*messages)
    seen = toys.stream(data).messages
    assert b"".join(map(bytes, seen)) == data
    for packet, message in zip(seen, messages, strict=True):
        assert bytes(built(toys, message)) == encoded(message)
        *around, inside = layers(message)
        for _ in around:
            packet = packet.message  # noqa: PLW2901
        assert type(packet).__name__ == type(inside).__name__
        assert getattr(packet, "stream", None) == getattr(inside, "stream", None)
    assert bytes(toys.Mark(kind="green", cnt=7, stream=3)) == encoded(Mark(2, 7, 3))


def built(toys: Any, message: Any) -> Any:
    """Build a packet from the fields of a message."""
    values = {each.name: getattr(message, each.name) for each in fields(message)}
    if "message" in values:
        values["message"] = built(toys, message.message)
    if "contacts" in values:
        values["contacts"] = [toys.Contact(id=row.id, address=row.address) for row in message.contacts]
    if "payload" in values:
        values["payload_"] = values.pop("payload")
    return getattr(toys, type(message).__name__)(**values)


def test_raw_bytes_name_its_fields() -> None:
    frame = encoded(DETOUR)
    parts = list(dissect(CapturedBytes(frame, b"\1" * len(frame)), CODEC))
    values = {part.name: part.value for part in parts}
    assert values["message.type"] == "ONWARD"
    assert values["message.message.type"] == "LETTER"
    assert values["message.message.first_seq"] == 17
    assert values["target"] == "10.0.2.3"
    assert sum(len(part.content.data) for part in parts) == len(frame)
    frame = encoded(ROUTE)
    values = {part.name: part.value for part in dissect(CapturedBytes(frame, b"\1" * len(frame)), CODEC)}
    assert (values["key"], values["contacts[0].id"]) == (f"{LOW | 5:032x}", f"{HIGH:032x}")


def test_the_documentation_has_each_field_with_its_place_type_unit_and_meaning() -> None:
    document = markdown(CODEC, SYSTEM)
    for row in (
        "| 1 | `cnt` | u64 | events | where it stands |",
        "| 9 | `stream` | u32 |  | which |",
        "| 2 | `GREEN` | go |",
        "| 4 | `key` | u128 |",
        "| 2 | `where` | f64 |  | from 0 to 1 |",
    ):
        assert row in document


@pytest.mark.parametrize("system", list(codecs()))
def test_the_document_in_the_repository_is_that_of_the_definitions(system: str) -> None:
    document = Path(protocols.__file__).parent / system / "MESSAGES.md"
    assert document.read_text() == markdown(codecs()[system], system), f"write it again, as {document} says"
