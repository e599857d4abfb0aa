"""The tables of captures without a run, on an incident whose every packet is known."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.capture.time_range import EVER, TimeRange
from analysis.errors import CaptureError
from analysis.sql.cases import CapturesCase
from analysis.sql.questions import open_questions
from analysis.taps import connections as tracking
from analysis.taps.crossing import compared, matches
from analysis.taps.opening import opened
from analysis.taps.tables import TapTables
from analysis.timelines.progress import NUMBERS, Progress
from tests.analysis.taps.incident import (
    ACK,
    ANSWER,
    BEGIN_NS,
    CLIENT,
    DELAY_NS,
    OFFSET_NS,
    REFUSED,
    REQUEST,
    RST,
    SERVER,
    STEP_NS,
    SYN,
    A,
    B,
    Incident,
    frame,
    incident,
    pcap,
)

S = 10**9
PSH, MSS = 8, 1460


def ask(question: str, *paths: Path, times: TimeRange = EVER, silence_s: float = 1.0) -> list[dict[str, Any]]:
    with opened([str(path) for path in paths]) as taps:
        tables = TapTables(compared(taps), times, silence_s)
        with open_questions([CapturesCase(tables)]) as engine:
            rows: list[dict[str, Any]] = engine.ask(question).table().to_pylist()
            return rows


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    return incident().write(tmp_path_factory.mktemp("incident"))


def test_a_connection_has_its_ends_bytes_round_trip_and_longest_silence(sites):
    row, refused = ask("SELECT * FROM connections ORDER BY start_ns", sites[0])
    requests = 39 + 1 + 59
    assert (row["client"], row["client_port"], row["server"], row["server_port"]) == (
        "10.1.0.2", CLIENT, "10.2.0.2", SERVER,
    )  # fmt: skip
    assert row["start_ns"] == BEGIN_NS
    assert row["opened"]
    assert row["answered"]
    assert row["round_trip_ms"] == 2 * DELAY_NS / 1e6
    assert row["bytes_to_server"] == (requests + 4) * REQUEST
    assert row["bytes_to_client"] == requests * ANSWER
    assert row["retransmissions_to_server"] == 4
    assert row["retransmissions_to_client"] == 0
    assert (row["closed_by"], row["closed_how"]) == ("client", "FIN")
    assert row["silence_from_ns"] == BEGIN_NS + 2 * S
    assert row["silence_s"] == (3 * S + 2 * DELAY_NS) / 1e9
    assert row["silence_tries"] == 4
    assert (refused["server_port"], refused["closed_by"], refused["closed_how"]) == (REFUSED, "server", "RST")
    assert not refused["answered"]


def test_the_other_tap_has_the_same_round_trip_and_a_silence_without_tries(sites):
    row = ask("SELECT * FROM connections ORDER BY start_ns", sites[1])[0]
    assert row["round_trip_ms"] == 2 * DELAY_NS / 1e6
    assert row["silence_tries"] == 0
    assert row["silence_from_ns"] == BEGIN_NS + OFFSET_NS + 2 * S - 50_000_000 + 3 * DELAY_NS


def test_silences_have_at_least_the_requested_length(sites):
    assert [row["tries"] for row in ask("SELECT * FROM silences", sites[0])] == [4]
    assert ask("SELECT * FROM silences", sites[0], silence_s=3.5) == []
    assert len(ask("SELECT * FROM silences", sites[0], silence_s=0.02)) > 50


@pytest.mark.slow
def test_small_batches_and_few_open_connections_give_the_same_rows(sites, monkeypatch):
    whole = ask("SELECT * FROM connections ORDER BY start_ns", *sites)
    monkeypatch.setattr("analysis.capture.pcap.files.record_batches.BATCH_ROWS", 7)
    assert ask("SELECT * FROM connections ORDER BY start_ns", *sites) == whole
    assert ask("SELECT count(*) AS n FROM silences", *sites)[0]["n"] == 2


def test_connections_beyond_the_limit_end_with_the_oldest(tmp_path, monkeypatch):
    many = Incident(0)
    for number in range(50):
        many.send(number * 1_000_000, A, (1000 + number, 80), (1, 0, SYN))
    monkeypatch.setattr("analysis.capture.pcap.files.record_batches.BATCH_ROWS", 5)
    monkeypatch.setattr(tracking, "OPEN_MAX", 10)
    rows = ask("SELECT client_port FROM connections", many.write(tmp_path)[0])
    assert sorted(row["client_port"] for row in rows) == list(range(1000, 1050))


def test_a_syn_with_another_number_begins_another_connection_of_the_same_ports(tmp_path):
    twice = Incident(0)
    for begin, seq in ((0, 100), (S, 100), (6 * S, 90_000)):  # the second is the first one, sent again
        twice.send(begin, A, (1, 2), (seq, 0, SYN))
    twice.send(7 * S, A, (1, 2), (90_001, 1, ACK), 10)
    rows = ask("SELECT * FROM connections ORDER BY start_ns", twice.write(tmp_path)[0])
    assert [row["packets_to_server"] for row in rows] == [2, 2]
    assert [row["bytes_to_server"] for row in rows] == [0, 10]


def test_an_unclosed_connection_is_silent_until_another_one_takes_its_ports(tmp_path):
    twice = Incident(0)
    twice.send(0, A, (1, 2), (100, 0, SYN))
    twice.send(6 * S, A, (1, 2), (90_000, 0, SYN))
    twice.send(9 * S, A, (3, 4), (1, 0, SYN))
    rows = ask("SELECT silence_s FROM connections ORDER BY start_ns", twice.write(tmp_path)[0])
    assert [row["silence_s"] for row in rows] == [6, 3, 0]


@pytest.mark.parametrize("batch", [1, 100])
def test_keep_alives_do_not_count_as_tries_nor_later_resets_as_silence(tmp_path, monkeypatch, batch):
    idle = Incident(0)
    idle.send(0, A, (1, 2), (1000, 1, ACK), 10)
    idle.send(DELAY_NS, B, (2, 1), (1, 1010, ACK))
    for at in (5 * S, 7 * S):  # as Windows and Linux keep alive
        idle.send(at, A, (1, 2), (1009, 1, ACK), 1 if at == 5 * S else 0)
        idle.send(at + DELAY_NS, B, (2, 1), (1, 1010, ACK))
    for at in (8 * S, 20 * S, 30 * S):
        idle.send(at, B, (2, 1), (1, 1010, RST))
    monkeypatch.setattr("analysis.capture.pcap.files.record_batches.BATCH_ROWS", batch)
    [row] = ask("SELECT * FROM connections", idle.write(tmp_path)[0])
    assert (row["silence_s"], row["silence_tries"]) == (8 - DELAY_NS / S, 0)
    assert row["retransmissions_to_server"] + row["retransmissions_to_client"] == 0


def test_packets_without_captured_ports_have_no_connection(tmp_path):
    cut = Incident(0)
    cut.send(0, A, (1, 2), (1000, 1, ACK), 10)
    cut.at_a = [(t_ns, packet[:36]) for t_ns, packet in cut.at_a]
    assert ask("SELECT * FROM connections", cut.write(tmp_path)[0]) == []


def test_numbers_that_wrap_are_progress_and_old_ones_are_not():
    progress = Progress()
    direction = np.zeros(4, np.int64)
    numbers = np.array([NUMBERS - 10, 5, NUMBERS - 10, 20]) % NUMBERS
    found, place = progress.take(direction, numbers, numbers)
    assert found.tolist() == [True, True, False, True]
    assert place.tolist() == [0, 15, 0, 30]
    found, place = progress.take(direction[:2], np.array([20, 21]), np.array([0, 0]))
    assert found.tolist() == [False, True]


def test_packets_with_equal_contents_match_in_order_if_both_sides_have_as_many():
    near, far = np.array([1, 2, 2, 3, 3], np.uint64), np.array([2, 1, 3, 2], np.uint64)
    first, second, unclear, unclear_far = matches(near, far)
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 1), (1, 0), (2, 3)]
    assert unclear.tolist() == [False, False, False, True, True]
    assert unclear_far.tolist() == [False, False, True, False]


def test_each_packet_has_its_delay_on_one_clock_and_the_black_holes_are_lost(sites):
    rows = ask("SELECT * FROM transfers ORDER BY t_ns", *sites)
    assert {(row["sender"], row["fate"]) for row in rows} == {
        ("site-a", "arrived"), ("site-b", "arrived"), ("site-a", "lost"),
    }  # fmt: skip
    lost = [(row["t_ns"] - BEGIN_NS) / 1e9 for row in rows if row["fate"] == "lost"]
    assert lost == [2.0, 2.2, 2.6, 3.4]
    delays = [row["t_complete_ns"] - row["t_sent_ns"] for row in rows if row["fate"] == "arrived"]
    assert min(delays) > 0
    clocks = {row["clock"]: row for row in ask("TABLE clocks", *sites)}
    assert clocks["site-a"]["source"] == "reference"
    error_ms = clocks["site-b"]["error_ms"]
    assert abs(clocks["site-b"]["offset_ms"] - OFFSET_NS / 1e6) <= error_ms <= 2 * DELAY_NS / 1e6
    assert all(abs(delay - DELAY_NS) / 1e6 <= error_ms for delay in delays)


def test_the_order_of_the_captures_changes_only_the_clock(sites):
    there, back = (
        ask("SELECT sender, type, fate, count(*) AS n FROM transfers GROUP BY ALL ORDER BY ALL", *each)
        for each in (sites, sites[::-1])
    )
    assert there == back


def test_bytes_of_a_stream_have_their_place_and_repeated_ones_are_marked(sites):
    rows = ask("SELECT * FROM transfers WHERE type = 'DATA' AND sender = 'site-a' ORDER BY t_ns", *sites)
    assert [row["stream_offset"] for row in rows[:3]] == [0, REQUEST, 2 * REQUEST]
    assert sum(row["retransmitted"] for row in rows) == 4


def test_a_time_range_changes_no_fate_at_its_ends(sites):
    of = "SELECT t_ns, type, fate FROM transfers"
    begin, end = BEGIN_NS + S, BEGIN_NS + S + 55_000_000
    whole = [row for row in ask(f"{of} ORDER BY t_ns", *sites) if begin <= row["t_ns"] < end]
    assert ask(f"{of} ORDER BY t_ns", *sites, times=TimeRange(begin, end)) == whole
    assert {row["fate"] for row in whole} == {"arrived"}


@pytest.mark.parametrize("link", [b"", bytes(12) + b"\x08\x00", bytes(14) + b"\x08\x00"])
def test_an_offloaded_frame_is_compared_with_its_segments(tmp_path, link):
    offloaded = Incident(0)
    for number in range(10):
        t_ns, seq = number * STEP_NS, 1000 + number * 3 * MSS
        offloaded.send(t_ns, A, (1, 2), (seq, 1, PSH | ACK), 3 * MSS)
        del offloaded.at_b[-1]
        for part in range(3):
            flags = ACK | (PSH if part == 2 else 0)
            packet = frame(A, B, (1, 2), (seq + part * MSS, 1, flags), bytes(MSS), number + 1 + part)
            offloaded.at_b.append((t_ns + DELAY_NS, packet))
        offloaded.send(t_ns + 2 * DELAY_NS, B, (2, 1), (1, seq + 3 * MSS, ACK))
    del offloaded.at_b[4]
    paths = offloaded.write(tmp_path)
    link_type = {0: 101, 14: 1, 16: 113}[len(link)]
    paths[0].write_bytes(pcap([(t_ns, link + packet[14:]) for t_ns, packet in offloaded.at_a], link_type))
    rows = ask("SELECT fate, count(*) AS n FROM transfers WHERE sport = 1 GROUP BY fate", *paths)
    assert {row["fate"]: row["n"] for row in rows} == {"arrived": 29, "lost": 1}


def test_two_taps_at_one_place_differ_only_by_their_clocks(tmp_path):
    mirrored = incident()
    mirrored.at_b = [(t_ns + OFFSET_NS, packet) for t_ns, packet in mirrored.at_a]
    paths = mirrored.write(tmp_path)
    rows = ask("SELECT t_arrived_ns - t_sent_ns AS delay_ns, fate FROM transfers", *paths)
    assert {row["fate"] for row in rows} == {"arrived"}
    assert max(abs(row["delay_ns"]) for row in rows) < 1000
    assert ask("SELECT offset_ms FROM clocks", *paths)[1]["offset_ms"] == pytest.approx(
        OFFSET_NS / 1e6, abs=1e-3
    )


def test_packets_that_the_other_tap_could_not_have_captured_are_unseen(tmp_path):
    cut = incident()
    cut.at_b = [each for each in cut.at_b if each[0] < 7 * S]
    rows = ask("SELECT fate, min(t_ns) AS t_ns FROM transfers GROUP BY fate", *cut.write(tmp_path))
    assert {row["fate"] for row in rows} == {"arrived", "lost", "unseen"}
    assert next(row["t_ns"] for row in rows if row["fate"] == "unseen") > BEGIN_NS + 6 * S


def test_captures_without_common_packets_are_not_compared(sites, tmp_path):
    other = Incident(0)
    for number in range(50):
        other.send(number * 1_000_000, A, (1000 + number, 80), (1, 0, SYN))
    assert ask("SELECT * FROM transfers", sites[0], other.write(tmp_path)[0]) == []


def test_throughput_adds_up_to_the_bytes_on_the_wire(sites):
    of = "SELECT scope, sum(bytes_per_s * bin_s) AS bytes FROM throughput GROUP BY scope ORDER BY scope"
    [packets] = ask("SELECT sum(wire_length) AS bytes FROM packets", *sites)
    assert [row["bytes"] for row in ask(of, *sites)] == pytest.approx([packets["bytes"], packets["bytes"]])


def test_captures_of_one_name_in_two_folders_have_two_names(tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        incident(0).write(tmp_path / name)
    rows = ask("SELECT capture FROM captures", *(tmp_path / name / "site-a.pcap" for name in ("x", "y")))
    assert [row["capture"] for row in rows] == ["x/site-a.pcap", "y/site-a.pcap"]


def test_an_unusable_capture_is_a_row_and_none_at_all_an_error(sites, tmp_path):
    (tmp_path / "other.pcap").write_bytes(b"no capture at all, but text")
    rows = ask("SELECT capture, problem FROM captures", sites[0], tmp_path / "other.pcap")
    assert [bool(row["problem"]) for row in rows] == [False, True]
    with pytest.raises(CaptureError, match=r"other\.pcap: neither a pcap nor a pcapng file"):
        ask("SELECT 1", tmp_path / "other.pcap")


def test_a_capture_without_packets_has_empty_tables(tmp_path):
    (tmp_path / "empty.pcap").write_bytes(pcap([]))
    for table in ("packets", "connections", "silences", "throughput", "transfers"):
        assert ask(f"SELECT * FROM {table}", tmp_path / "empty.pcap") == []
