"""The fuzzer's targets: from any bytes to the analysis's result, with its invariants.

Each target takes bytes and returns, or raises AssertionError or another error that must not occur. Input that
is no capture must be refused with a CaptureError, and with nothing else. For other files see `readers`.
"""

import itertools
import math
import random
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.files.index import CaptureIndex, build_index
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.streams import CaptureStreams, HostCapture, WaitLimits
from analysis.errors import CaptureError
from analysis.history.files import read_rows
from analysis.history.history_schemas import SCHEMAS
from analysis.history.row_checks import UnusableError
from experiments.files.plain_name import plain_name
from node.core.errors import RemoteProtocolError
from node.core.framing import frames_in
from node.protocols.sprinkler.messages import CODEC
from tests.analysis.capture.pcap import complete_capture as whole
from tests.analysis.capture.pcap import drawn_captures, judging, reading
from tests.analysis.capture.pcap.captures import ACK, RST, START_NS, SYN, Record, pcap_bytes
from tests.analysis.capture.pcap.complete_capture import Sent
from tests.fuzz import readers
from tests.fuzz.readers import temporary_file

PORT = 7000
HEADERS_BYTES = 14 + 20 + 20
STREAM_BYTES_MAX = 4_096  # the dumb reference counts bytes one by one
CAPTURE = "captures/host.pcap"
UNSHOWN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of Unicode: what moves a terminal's cursor, ends a line or turns text around."""
Tables = dict[str, list[dict[str, Any]]]


def index(content: bytes) -> None:
    """Index a complete file: where its records are, and what is wrong with it."""
    with temporary_file(CAPTURE, content) as path, suppress(CaptureError):
        _check_index(build_index(path), len(content))


def dissect(content: bytes) -> None:
    """Frames, each after its length, behind one byte that chooses the link type: their header fields."""
    link_types = (1, 101, 12, 113, 276, 0, 108, 228, 229, 147)
    frames, at = [], 1
    while at < len(content):
        length = content[at]
        frames.append(content[at + 1 : at + 1 + length])
        at += 1 + length
    capture = bytearray(pcap_bytes(Record(START_NS, frame, len(frame) + len(frame) % 3) for frame in frames))
    capture[20] = link_types[content[0] % len(link_types)] & 0xFF if content else 1
    capture[21] = link_types[content[0] % len(link_types)] >> 8 if content else 0
    with temporary_file(CAPTURE, bytes(capture)) as path:
        found = build_index(path)
        assert found.packets == len(frames)
        assert sum(map(_check_fields, reading.packets(path, found))) == len(frames)


def reassemble(content: bytes) -> None:
    """Segments of one direction, four bytes each, in windows: the same as from all of them at once, byte by
    byte."""
    sent = [Sent(START_NS, 0xFFFFFF00, SYN, b"", 0)]
    stream = b"".join(
        bytes(part) for part in itertools.islice(itertools.cycle(CODEC.encode(_SUBSCRIBE)), 2 * len(content))
    )
    stream += bytes(STREAM_BYTES_MAX)
    for number in range(0, len(content) - 3, 4):
        place, length, how, cut = content[number : number + 4]
        start = (place * 8 + cut % 8) % (STREAM_BYTES_MAX - 256)
        data = stream[start : start + length % 64]
        flags = (SYN if how == 255 else ACK) | (RST if how == 254 else 0)
        captured = len(data) if how % 4 else min(len(data), cut)
        sent.append(Sent(START_NS + number + 1, (0xFFFFFF01 + start) % 2**32, flags, data, captured))
    windows = 1 + len(content) % 5
    horizon = WaitLimits(horizon_ns=1 << 60)
    found = _windowed(sent, windows, horizon)
    for name, wanted in whole.tables(sent, CODEC).items():
        names = sorted(wanted[0]) if wanted else []
        ours, theirs = ([[row[each] for each in names] for row in rows] for rows in (found[name], wanted))
        assert sorted(ours, key=repr) == sorted(theirs, key=repr), name
    hasty = _windowed(sent, windows, WaitLimits(horizon_ns=0, pieces_max=8))
    assert sum(row["bytes"] for row in hasty["decoding"]) <= sum(row["bytes"] for row in found["decoding"])


def decode(content: bytes) -> None:
    """Decode a stream's bytes after one byte with the segment size; the frames must be those that nodes
    read.
    """
    step = 1 + content[0] if content else 1
    data = content[1:]
    sent = [Sent(START_NS, 5, SYN, b"", 0)]
    for start in range(0, len(data), step):
        part = data[start : start + step]
        sent.append(Sent(START_NS + start + 1, 6 + start, ACK, part, len(part)))
    found = _windowed(sent, 1 + len(content) % 4, WaitLimits(horizon_ns=0))
    [counts] = found["decoding"]
    whole_frames, stopped = [], False
    try:
        whole_frames.extend(frames_in(data))
    except RemoteProtocolError:
        stopped = True
    if not stopped:
        assert counts["messages"] + counts["malformed"] >= len(whole_frames)
    assert (counts["stopped"] is not None) <= stopped
    assert len(found["messages"]) == counts["messages"]
    decoded = sum(row["length"] for row in found["messages"])
    assert decoded + counts["unfinished_bytes"] + counts["undecoded_bytes"] <= counts["bytes"] == len(data)


def capture(content: bytes) -> None:
    """Read a complete file, up to its messages."""
    with temporary_file(CAPTURE, content) as path:
        try:
            found = build_index(path)
        except CaptureError:
            return
        _check_index(found, len(content))
        emitted = reading.Tables()
        host = HostCapture(str(path), "r0-proxy-0", "10.0.0.2", PORT)
        limits = WaitLimits(horizon_ns=0)
        conversations = CaptureStreams(map_bytes(path), host, CODEC, emitted.emit, limits)
        rows = 0
        for columns in reading.packets(path, found):
            rows += _check_fields(columns)
            conversations.take([columns])
        conversations.end()
        assert rows == found.packets
        tables = emitted.rows()
        assert len(tables["messages"]) == sum(row["messages"] for row in tables["decoding"])


def wireshark(content: bytes) -> None:
    """Draw a capture, with the content as its seed: Cutset reads in it what tshark reads."""
    with temporary_file(CAPTURE, drawn_captures.pcapng(random.Random(content))) as path:
        _, found = judging.differences(path)
        assert not found


def history(content: bytes) -> None:
    """Read a file of a history as one of each table: refused in a line, or every value is valid."""
    with temporary_file(CAPTURE, content) as path:
        for table, schema in SCHEMAS.items():
            try:
                rows = read_rows(path, table)
            except UnusableError:
                continue
            assert rows.schema == schema
            rows.validate(full=True)
            for row in rows.to_pylist():
                plain_name(row["run"], path)
                values = [*row.values(), *row.get("problems", ()), *row.get("reasons", ())]
                shown = "".join(value for value in values if isinstance(value, str))
                assert not UNSHOWN & {unicodedata.category(letter) for letter in shown}
                assert all(math.isfinite(value) for value in values if isinstance(value, float))


_READERS = (
    readers.run,
    readers.summary,
    readers.sweep,
    readers.archive,
    readers.deliveries,
    readers.inventory,
)
TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (index, dissect, reassemble, decode, capture, wireshark, history, *_READERS)
}
_SUBSCRIBE = CODEC.by_name["SUBSCRIBE"].message(1, 2)


def _check_index(found: CaptureIndex, size: int) -> None:
    assert 0 <= found.good_bytes <= size
    assert found.problem or found.good_bytes == size
    assert all(split.offset < split.end <= found.good_bytes for split in found.splits)
    assert all(split.first_ns <= split.last_ns for split in found.splits)


def _check_fields(columns: Columns) -> int:
    assert len({values.size for values in columns.values()}) == 1
    for name, limit in (("sport", 1 << 16), ("dport", 1 << 16), ("seq", 1 << 32), ("ack", 1 << 32)):
        assert ((columns[name] >= 0) & (columns[name] < limit)).all(), name
    assert ((columns["proto"] >= -1) & (columns["proto"] < 256)).all()
    assert (columns["payload_length"] >= 0).all()
    assert (columns["length"] >= 0).all()
    return int(columns["t_ns"].size)


def _windowed(sent: list[Sent], windows: int, patience: WaitLimits) -> Tables:
    """Return the tables of a capture of these segments, read in this many windows."""
    cuts = [len(sent) * number // windows for number in range(1, windows)]
    with temporary_file(CAPTURE, b"") as path:
        return reading.windowed(path, sent, cuts, patience)
