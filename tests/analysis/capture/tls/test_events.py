"""Events in TLS connections are found with the keys that programs logged; what cannot be read is said."""

import ssl
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap.streams import HostCapture
from analysis.capture.tls import sessions as sessions_module
from analysis.capture.tls.events import NO_KEY_LOG, NO_KEYS, TlsConnections, TlsKeys
from analysis.capture.tls.records import NO_BEGINNING
from node.core.marker import marked
from tests.analysis.capture.pcap import reading
from tests.analysis.capture.pcap.captures import START_NS, at_intervals, segment, write_pcap
from tests.analysis.capture.tls.speaking import CLIENT, SERVER, certificate, records, spoken

SIZE = 40
STEP_NS = 1_000_000
OLD, NEW = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    return certificate(tmp_path_factory.mktemp("certificate"))


def payload(seq: int, stream: int = 0) -> bytes:
    return marked(stream, seq, SIZE, START_NS)


def extract(folder: Path, frames, keys: Path | None) -> dict[str, pa.Table]:
    path = write_pcap(folder / "r0-broker-0-eth0.pcap", at_intervals(frames, step_ns=STEP_NS))
    capture = HostCapture(str(path), "r0-broker-0", SERVER[0], None)
    scratch = folder / "scratch"
    scratch.mkdir()
    with TlsConnections(MarkerSearch(SIZE, {CLIENT[0]: frozenset({0})}), TlsKeys(keys), scratch) as tls:
        return reading.extract(capture, MarkerSearch(SIZE), tls)


def seqs(found: dict[str, pa.Table]) -> list[int]:
    return found["messages"].column("first_seq").to_pylist()


def reasons(found: dict[str, pa.Table]) -> set[str | None]:
    return set(found["decoding"].column("stopped").to_pylist())


@pytest.mark.parametrize(
    ("version", "alpn", "ciphers"),
    [
        (NEW, (), ""),
        (OLD, (), "ECDHE+AESGCM"),
        (OLD, (), "ECDHE+CHACHA20"),
        (NEW, ("h2",), ""),  # bytes are bytes, whatever protocol their connection is said to speak
        (OLD, ("http/1.1",), "ECDHE+AES256:!AESGCM:!AESCCM"),
    ],
)
def test_events_are_found_in_both_directions(tmp_path, own, version, alpn, ciphers):
    said = [(True, b"hello\n"), (True, payload(1) + b"--" + payload(2)), (False, b"ok"), (False, payload(3))]
    talk = spoken(said, own, tmp_path / "keys", version, alpn, ciphers)
    found = extract(tmp_path, talk.frames(step=100), tmp_path / "keys")
    assert sorted(seqs(found)) == [1, 2, 3]
    rows = {row["first_seq"]: row for row in found["messages"].to_pylist()}
    assert [rows[seq]["type"] for seq in (1, 2, 3)] == ["NEW_EVENT", "NEW_EVENT", "PASSED_EVENT"]
    assert [rows[seq]["direction"] for seq in (1, 2, 3)] == ["in", "in", "out"]
    assert reasons(found) == {None}
    assert sum(found["decoding"].column("messages").to_pylist()) == 3


def test_an_event_stands_where_its_bytes_are_in_the_stream(tmp_path, own):
    said = [(True, b"hello\n"), (True, payload(1) + b"--" + payload(2))]
    talk = spoken(said, own, tmp_path / "keys")
    rows = extract(tmp_path, talk.frames(), tmp_path / "keys")["messages"].to_pylist()
    begin, _ = records(talk.stream(by_client=True))[-1]
    assert [row["stream_offset"] - begin for row in rows] == [5, 5 + SIZE + 2]
    assert [row["length"] for row in rows] == [SIZE, SIZE]


def test_an_event_is_whole_when_the_last_segment_of_its_record_is_there(tmp_path, own):
    talk = spoken([(True, payload(1) + bytes(500))], own, tmp_path / "keys")
    frames = talk.frames(step=64)
    [row] = extract(tmp_path, frames, tmp_path / "keys")["messages"].to_pylist()
    begin, end = records(talk.stream(by_client=True))[-1]
    segments = -(-(end - begin) // 64)
    assert row["t_complete_ns"] == START_NS + (len(frames) - 1) * STEP_NS
    assert row["t_first_ns"] == START_NS + (len(frames) - segments) * STEP_NS


def test_an_event_may_go_on_in_the_next_record(tmp_path, own):
    whole = payload(1)
    said = [(True, whole[:17]), (True, whole[17:] + payload(2)[:30]), (True, payload(2)[30:])]
    talk = spoken(said, own, tmp_path / "keys")
    rows = extract(tmp_path, talk.frames(), tmp_path / "keys")["messages"].to_pylist()
    (first, _), (second, _), (third, _) = records(talk.stream(by_client=True))[-3:]
    assert [row["first_seq"] for row in rows] == [1, 2]
    ends = [row["stream_offset"] + row["length"] for row in rows]
    assert [row["stream_offset"] for row in rows] == [first + 5, second + 5 + SIZE - 17]
    assert ends == [second + 5 + SIZE - 17, third + 5 + 10]


def test_segments_may_come_in_any_order_and_again(tmp_path, own):
    talk = spoken([(True, payload(seq)) for seq in range(1, 30)], own, tmp_path / "keys")
    frames = talk.frames(step=50)
    middle = len(frames) // 2
    frames[middle], frames[middle + 1] = frames[middle + 1], frames[middle]
    frames += frames[-20:]
    found = extract(tmp_path, frames, tmp_path / "keys")
    assert seqs(found) == list(range(1, 30))
    assert any(found["messages"].column("retransmitted").to_pylist())


@pytest.mark.slow
def test_connections_are_distinguished_and_the_same_ports_may_be_used_again(tmp_path, own, monkeypatch):
    monkeypatch.setattr(sessions_module, "SHARE_SESSIONS_MAX", 2)
    frames = []
    for number, port in enumerate((40000, 40001, 40000, 40002, 40000)):
        talk = spoken([(True, payload(number)), (False, payload(number, 1))], own, tmp_path / "keys")
        both = talk.frames(client=(CLIENT[0], port), step=300)
        frames += [_later(frame, number) for frame in both]
    found = extract(tmp_path, frames, tmp_path / "keys")
    assert sorted(seqs(found)) == sorted([*range(5)] * 2)
    assert reasons(found) == {None}
    assert not list((tmp_path / "scratch").glob("*.pcap"))


def _later(frame: bytes, life: int) -> bytes:
    """Return the segment with other sequence numbers, as from another connection."""
    at = 14 + 20 + 4
    number = (int.from_bytes(frame[at : at + 4]) + life * 1_000_000) % 2**32
    return frame[:at] + number.to_bytes(4) + frame[at + 4 :]


def test_a_connection_in_the_clear_is_searched_as_it_is(tmp_path, own):
    talk = spoken([(True, payload(1))], own, tmp_path / "keys")
    ends = {"src": (CLIENT[0], 40009), "dst": SERVER}
    clear = [segment(1, flags=2, **ends), segment(2, b"PUT " + payload(2), **ends)]
    assert sorted(seqs(extract(tmp_path, [*talk.frames(), *clear], tmp_path / "keys"))) == [1, 2]


def test_without_a_key_log_nothing_is_read_and_that_is_reported(tmp_path, own):
    talk = spoken([(True, payload(1)), (False, payload(2))], own, None)
    found = extract(tmp_path, talk.frames(), None)
    assert seqs(found) == []
    assert reasons(found) == {NO_KEY_LOG}
    assert min(found["decoding"].column("undecoded_bytes").to_pylist()) >= SIZE


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_connection_whose_keys_were_not_logged_is_reported_and_the_others_are_read(tmp_path, own, version):
    logged = spoken([(True, payload(1))], own, tmp_path / "keys", version)
    silent = spoken([(True, payload(2))], own, None, version)
    frames = [*logged.frames(), *silent.frames(client=(CLIENT[0], 40001))]
    found = extract(tmp_path, frames, tmp_path / "keys")
    assert seqs(found) == [1]
    stopped = {
        row["sport"]: row["stopped"] for row in found["decoding"].to_pylist() if row["direction"] == "in"
    }
    assert stopped == {40000: None, 40001: NO_KEYS}


def test_missing_tshark_is_reported(tmp_path, own, monkeypatch):
    talk = spoken([(True, payload(1))], own, tmp_path / "keys")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = extract(tmp_path, talk.frames(), tmp_path / "keys")
    assert seqs(found) == []
    assert "tshark is not installed; it decrypts TLS connections" in reasons(found)


def test_behind_bytes_that_are_missing_nothing_is_read(tmp_path, own):
    talk = spoken([(True, payload(seq)) for seq in (1, 2, 3)], own, tmp_path / "keys")
    frames = talk.frames()
    del frames[-2]
    found = extract(tmp_path, frames, tmp_path / "keys")
    assert seqs(found) == [1]
    [counts] = [row for row in found["decoding"].to_pylist() if row["direction"] == "in"]
    assert counts["missing_bytes"] > SIZE
    assert counts["undecoded_bytes"] > SIZE
    assert counts["stopped"] is None, "who was to have it could not read it, either"


def test_a_connection_whose_beginning_was_not_captured_cannot_be_read(tmp_path, own):
    talk = spoken([(True, payload(1))], own, tmp_path / "keys")
    found = extract(tmp_path, talk.frames()[3:], tmp_path / "keys")
    assert seqs(found) == []
    assert reasons(found) == {NO_BEGINNING}


def test_a_stream_that_stops_being_tls_is_reported(tmp_path, own):
    talk = spoken([(True, payload(1))], own, tmp_path / "keys")
    talk.turns.append((True, b"no record, but bytes"))
    found = extract(tmp_path, talk.frames(), tmp_path / "keys")
    assert seqs(found) == [1]
    assert any(str(why).startswith("no TLS record begins at byte") for why in reasons(found))


def test_a_failing_program_is_reported_with_its_output(tmp_path, own, monkeypatch):
    talk = spoken([(True, payload(1))], own, tmp_path / "keys")
    false = tmp_path / "bin" / "tshark"
    false.parent.mkdir()
    false.write_text('#!/bin/sh\ntest "$1" = -G && exit 0\necho "it is Friday" >&2\nexit 3\n')
    false.chmod(0o755)
    monkeypatch.setenv("PATH", f"{false.parent}:/usr/bin:/bin")
    found = extract(tmp_path, talk.frames(), tmp_path / "keys")
    assert "tshark ended with code 3: it is Friday" in reasons(found)
