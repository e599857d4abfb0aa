"""A message is defined in one place: a new field there appears everywhere."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pytest

from analysis.capture.pcap.streams import HostCapture, extract_messages
from analysis.messages.scapy_layers import layers_of
from analysis.messages.table import markdown
from analysis.messages.wireshark import dissector
from node import protocols
from node.core.framing import frames_in
from node.core.message_layout import Codec, Field, MessageLayout, NamedValues
from node.systems import codecs
from tests.analysis.messages.tshark import PORT, SYSTEM, Tshark, connection

DOCUMENT = Path(protocols.__file__).with_name("sprinkler") / "MESSAGES.md"


class Colour(NamedValues):
    """The colour of a mark."""

    RED = 1, "stop"
    GREEN = 2, "go"


@dataclass(frozen=True, slots=True)
class Before:
    """A mark on a stream."""

    reads: ClassVar = ("s{stream}",)

    stream: Annotated[int, Field("I", "", "the stream")]


@dataclass(frozen=True, slots=True)
class After:
    """A mark on a stream."""

    reads: ClassVar = ("{kind}", "at {cnt}", "s{stream}")

    kind: Annotated[int, Field("B", "", "its colour", Colour)]
    cnt: Annotated[int, Field("Q", "events", "where it stands")]
    stream: Annotated[int, Field("I", "", "the stream")]


def codec_of(message: type) -> Codec:
    return Codec((MessageLayout(message, 1),))


def frame(codec: Codec, message: Any) -> bytes:
    return b"".join(bytes(part) for part in codec.encode(message))


def test_the_codec_has_the_new_fields() -> None:
    codec = codec_of(After)
    data = frame(codec, After(2, 7, 3))
    assert len(data) == len(frame(codec_of(Before), Before(3))) + 9
    (read,) = frames_in(data)
    assert codec.decode(read) == After(2, 7, 3)


def test_the_analysis_decodes_the_new_fields(tmp_path: Path) -> None:
    codec = codec_of(After)
    found: list[pa.RecordBatch] = []
    capture = connection(tmp_path / "a.pcap", [(0, frame(codec, After(2, 7, 3)))])
    host = HostCapture(str(capture), "r0-proxy-0", "10.0.0.2", PORT)
    extract_messages(host, codec, lambda table, rows: found.append(rows) if table == "messages" else None)
    (row,) = pa.Table.from_batches(found).to_pylist()
    assert (row["type"], row["kind"], row["cnt"], row["stream"]) == ("AFTER", 2, 7, 3)


def test_scapy_has_the_new_fields() -> None:
    layers = layers_of(codec_of(After), SYSTEM)
    built = bytes(layers.After(kind="green", cnt=7, stream=3))
    assert built == frame(codec_of(After), After(2, 7, 3))
    (got,) = layers.stream(built).messages
    assert (got.kind, got.cnt, got.stream) == (2, 7, 3)


def test_wireshark_has_the_new_fields(tmp_path: Path) -> None:
    script = tmp_path / "toy.lua"
    script.write_text(dissector(codec_of(After), SYSTEM, PORT))
    capture = connection(tmp_path / "a.pcap", [(0, frame(codec_of(After), After(2, 7, 3)))])
    (seen,) = Tshark(script).messages(capture)
    assert seen.reads == "AFTER green at 7 s3"
    assert (seen.fields["kind"], seen.fields["cnt"], seen.fields["stream"]) == (["2"], ["7"], ["3"])


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere on a line."""

    reads: ClassVar = ("at {where}",)

    number: Annotated[int, Field("H", "", "whose")]
    where: Annotated[float, Field("d", "", "from 0 to 1")]


def test_a_double_is_read_everywhere(tmp_path: Path) -> None:
    codec, data = codec_of(Place), frame(codec_of(Place), Place(3, 0.625))
    (got,) = layers_of(codec, SYSTEM).stream(data).messages
    assert (got.number, got.where) == (3, 0.625)
    script = tmp_path / "toy.lua"
    script.write_text(dissector(codec, SYSTEM, PORT))
    (seen,) = Tshark(script).messages(connection(tmp_path / "a.pcap", [(0, data)]))
    assert seen.reads == "PLACE at 0.625"
    assert seen.fields["where"] == ["0.625"]
    assert "| 2 | `where` | f64 |  | from 0 to 1 |" in markdown(codec, SYSTEM)


def test_the_document_has_the_new_fields() -> None:
    before, after = (markdown(codec_of(message), SYSTEM) for message in (Before, After))
    assert "| 0 | `stream` | u32 |  | the stream |" in before
    assert "| 1 | `cnt` | u64 | events | where it stands |" in after
    assert "| 9 | `stream` | u32 |  | the stream |" in after
    assert "| 2 | `GREEN` | go |" in after


@pytest.mark.parametrize("system", list(codecs()))
def test_the_document_in_the_repository_is_that_of_the_definitions(system: str) -> None:
    document = DOCUMENT.parent.with_name(system) / DOCUMENT.name
    assert document.read_text() == markdown(codecs()[system], system), f"write it again, as {document} says"
