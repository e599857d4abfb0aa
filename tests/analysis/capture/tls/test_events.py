"""Events in TLS connections are found with logged keys; unread records are reported."""

import itertools
import ssl
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analysis.capture.markers import MarkerSearch
from analysis.capture.tls import sessions as sessions_module
from analysis.capture.tls.events import NO_KEY_LOG, NO_KEYS, TlsConnections, TlsKeys
from analysis.capture.tls.records import NO_BEGINNING
from node.core.marker import marked
from tests.analysis.capture.pcap.captures import START_NS, at_intervals, segment
from tests.analysis.capture.pcap.reading import search, seqs
from tests.analysis.capture.tls.speaking import CLIENT, SERVER, Spoken, certificate, records, spoken

SIZE = 40
STEP_NS = 1_000_000
OLD, NEW = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
MARKERS = MarkerSearch(SIZE, {CLIENT[0]: frozenset({0})})


def payload(seq: int, stream: int = 0) -> bytes:
    return marked(stream, seq, SIZE, START_NS)


def extract(folder: Path, frames, keys: Path | None) -> dict[str, pa.Table]:
    scratch = folder / "scratch"
    scratch.mkdir()
    with TlsConnections(MARKERS, TlsKeys(keys), scratch) as tls:
        return search(folder, at_intervals(frames, step_ns=STEP_NS), MARKERS, tls)


def reasons(found: dict[str, pa.Table]) -> set[str | None]:
    return set(found["decoding"].column("stopped").to_pylist())


WAYS = {
    40_001: (NEW, (), ""),
    40_002: (OLD, (), "ECDHE+AESGCM"),
    40_003: (OLD, (), "ECDHE+CHACHA20"),
    40_004: (NEW, ("h2",), ""),  # bytes are bytes, whatever protocol their connection is said to speak
    40_005: (OLD, ("http/1.1",), "ECDHE+AES256:!AESGCM:!AESCCM"),
}
PLAIN, WHOLE, CUT, DISORDER, UNLOGGED, UNLOGGED_OLD, CLEAR, HOLE, LATE, BROKEN = range(40_011, 40_021)
"""Ports of the client, one for each connection of the capture."""


class Capture:
    """One capture of all kinds of connections, read with the keys of most."""

    def __init__(self, folder: Path, own: Path) -> None:
        self.own, self.keys = own, folder / "keys"
        self.talks: dict[int, Spoken] = {}
        self.sent: dict[int, list[bytes]] = {}
        both = [
            (True, b"hello\n"),
            (True, payload(1) + b"--" + payload(2)),
            (False, b"ok"),
            (False, payload(3)),
        ]
        for port, how in WAYS.items():
            self.sent[port] = self.say(both, *how).frames((CLIENT[0], port), 100)
        self.talk(PLAIN, both[:2])
        self.talk(WHOLE, [(True, payload(1) + bytes(500))], step=64)
        self.talk(
            CUT, [(True, payload(1)[:17]), (True, payload(1)[17:] + payload(2)[:30]), (True, payload(2)[30:])]
        )
        frames = self.talk(DISORDER, [(True, payload(seq)) for seq in range(1, 30)], step=50)
        middle = len(frames) // 2
        frames[middle], frames[middle + 1] = frames[middle + 1], frames[middle]
        self.sent[DISORDER] = frames + frames[-20:]
        for port, version in ((UNLOGGED, NEW), (UNLOGGED_OLD, OLD)):
            silent = spoken([(True, payload(2))], own, None, version)
            self.sent[port] = silent.frames((CLIENT[0], port))
        ends = {"src": (CLIENT[0], CLEAR), "dst": SERVER}
        self.sent[CLEAR] = [segment(1, flags=2, **ends), segment(2, b"PUT " + payload(2), **ends)]
        frames = self.talk(HOLE, [(True, payload(seq)) for seq in (1, 2, 3)])
        self.sent[HOLE] = [*frames[:-2], frames[-1]]
        self.sent[LATE] = self.talk(LATE, [(True, payload(1))])[3:]
        broken = self.say([(True, payload(1))])
        broken.turns.append((True, b"no record, but bytes"))
        self.sent[BROKEN] = broken.frames((CLIENT[0], BROKEN))
        self.found = extract(folder, [frame for frames in self.sent.values() for frame in frames], self.keys)

    def say(self, said, version=NEW, alpn=(), ciphers="") -> Spoken:
        return spoken(said, self.own, self.keys, version, alpn, ciphers)

    def talk(self, port: int, said, step: int | None = None) -> list[bytes]:
        self.talks[port] = self.say(said)
        self.sent[port] = self.talks[port].frames((CLIENT[0], port), step)
        return [*self.sent[port]]

    def rows(self, port: int, table: str = "messages") -> list[dict]:
        """Return the rows of one connection, in order of sequence numbers."""
        at_client = (pc.field("sport") == port) | (pc.field("dport") == port)
        rows = self.found[table].filter(at_client).to_pylist()
        return sorted(rows, key=lambda row: row.get("first_seq") or 0)

    def incoming(self, port: int) -> dict:
        [counts] = [row for row in self.rows(port, "decoding") if row["direction"] == "in"]
        return counts

    def seqs(self, port: int) -> list[int]:
        return [row["first_seq"] for row in self.rows(port)]

    def at_ns(self, port: int) -> int:
        """Return the time of the connection's first segment."""
        before = itertools.takewhile(lambda other: other != port, self.sent)
        return START_NS + sum(len(self.sent[other]) for other in before) * STEP_NS


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    return certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def capture(tmp_path_factory, own) -> Capture:
    return Capture(tmp_path_factory.mktemp("capture"), own)


@pytest.mark.parametrize("port", WAYS)
def test_events_are_found_in_both_directions(capture, port):
    rows = capture.rows(port)
    assert [row["first_seq"] for row in rows] == [1, 2, 3]
    assert [row["type"] for row in rows] == ["NEW_EVENT", "NEW_EVENT", "PASSED_EVENT"]
    assert [row["direction"] for row in rows] == ["in", "in", "out"]
    counts = capture.rows(port, "decoding")
    assert {row["stopped"] for row in counts} == {None}
    assert sum(row["messages"] for row in counts) == 3


def test_a_decrypted_event_has_the_offset_of_its_bytes(capture):
    rows = capture.rows(PLAIN)
    begin, _ = records(capture.talks[PLAIN].stream(by_client=True))[-1]
    assert [row["stream_offset"] - begin for row in rows] == [5, 5 + SIZE + 2]
    assert [row["length"] for row in rows] == [SIZE, SIZE]


def test_a_decrypted_event_is_complete_with_the_last_segment_of_its_record(capture):
    [row] = capture.rows(WHOLE)
    begin, end = records(capture.talks[WHOLE].stream(by_client=True))[-1]
    sent, segments = len(capture.sent[WHOLE]), -(-(end - begin) // 64)
    assert row["t_complete_ns"] == capture.at_ns(WHOLE) + (sent - 1) * STEP_NS
    assert row["t_first_ns"] == capture.at_ns(WHOLE) + (sent - segments) * STEP_NS


def test_an_event_may_span_records(capture):
    rows = capture.rows(CUT)
    (first, _), (second, _), (third, _) = records(capture.talks[CUT].stream(by_client=True))[-3:]
    assert [row["first_seq"] for row in rows] == [1, 2]
    ends = [row["stream_offset"] + row["length"] for row in rows]
    assert [row["stream_offset"] for row in rows] == [first + 5, second + 5 + SIZE - 17]
    assert ends == [second + 5 + SIZE - 17, third + 5 + 10]


def test_reordered_and_repeated_segments_are_accepted(capture):
    assert capture.seqs(DISORDER) == list(range(1, 30))
    assert any(row["retransmitted"] for row in capture.rows(DISORDER))


def test_a_cleartext_connection_is_searched_directly(capture):
    assert capture.seqs(CLEAR) == [2]


@pytest.mark.parametrize("port", [UNLOGGED, UNLOGGED_OLD])
def test_a_connection_whose_keys_were_not_logged_is_reported(capture, port):
    assert capture.rows(port) == []
    assert capture.incoming(port)["stopped"] == NO_KEYS


def test_no_record_after_missing_bytes_is_read(capture):
    assert capture.seqs(HOLE) == [1]
    counts = capture.incoming(HOLE)
    assert counts["missing_bytes"] > SIZE
    assert counts["undecoded_bytes"] > SIZE
    assert counts["stopped"] is None, "who was to have it could not read it, either"


def test_a_connection_whose_beginning_was_not_captured_cannot_be_read(capture):
    assert capture.rows(LATE) == []
    assert {row["stopped"] for row in capture.rows(LATE, "decoding")} == {NO_BEGINNING}


def test_a_stream_that_stops_being_tls_is_reported(capture):
    assert capture.seqs(BROKEN) == [1]
    assert capture.incoming(BROKEN)["stopped"].startswith("no TLS record begins at byte")


def test_the_same_ports_may_be_used_again_and_large_captures_are_decrypted_in_shares(
    tmp_path, own, monkeypatch
):
    monkeypatch.setattr(sessions_module, "SHARE_SESSIONS_MAX", 2)
    frames = []
    for number, port in enumerate((40000, 40001, 40000)):
        talk = spoken([(True, payload(number)), (False, payload(number, 1))], own, tmp_path / "keys")
        frames += [_later(frame, number) for frame in talk.frames((CLIENT[0], port), 300)]
    found = extract(tmp_path, frames, tmp_path / "keys")
    assert sorted(seqs(found)) == sorted([*range(3)] * 2)
    assert reasons(found) == {None}
    assert not list((tmp_path / "scratch").glob("*.pcap"))


def _later(frame: bytes, life: int) -> bytes:
    """Return the segment with other sequence numbers, as from another connection."""
    at = 14 + 20 + 4
    number = (int.from_bytes(frame[at : at + 4]) + life * 1_000_000) % 2**32
    return frame[:at] + number.to_bytes(4) + frame[at + 4 :]


FAILING = '#!/bin/sh\ntest "$1" = -G && exit 0\necho "it is Friday" >&2\nexit 3\n'


@pytest.mark.parametrize(
    ("log", "program", "said"),
    [
        pytest.param(None, None, NO_KEY_LOG, id="without a key log"),
        pytest.param("keys", "", "tshark is not installed; it decrypts TLS connections", id="without tshark"),
        pytest.param("keys", FAILING, "tshark ended with code 3: it is Friday", id="with a failing tshark"),
    ],
)
def test_without_keys_or_tshark_records_are_reported_as_unread(
    tmp_path, own, monkeypatch, log, program, said
):
    talk = spoken([(True, payload(1)), (False, payload(2))], own, log and tmp_path / log)
    if program is not None:
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        (tmp_path / "bin").mkdir()
    if program:
        (tmp_path / "bin" / "tshark").write_text(program)
        (tmp_path / "bin" / "tshark").chmod(0o755)
    found = extract(tmp_path, talk.frames(), log and tmp_path / log)
    assert seqs(found) == []
    assert reasons(found) == {said}
    assert min(found["decoding"].column("undecoded_bytes").to_pylist()) >= SIZE
