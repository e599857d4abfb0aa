"""Messages of the last seconds, from the newest parts of growing captures."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.capture.markers import MarkerSearch
from analysis.errors import AnalysisError
from analysis.live.recent import recent_messages
from analysis.live.recent.recent_messages import GRACE_NS, recent_transfers
from experiments.planned.plan import CapturePlan, HostPlan
from experiments.records.capture_parts import folder_of
from experiments.records.rundir import RunDirectory
from node.core.marker import marked
from node.protocols.sprinkler.messages import CODEC, Subscribe
from tests.analysis.capture.pcap.captures import Record, pcap_bytes, segment
from tests.run_json import SMALL

SECOND = 10**9
NOW_S = 1_700_000_100
FIRST_SEQ = 5000
DELAY_NS = 7_000_000
ENDS = (("10.0.0.2", 40000), ("10.0.0.3", 7000))
PLAN = replace(
    SMALL,
    parameters={"port": 7000},
    hosts=(
        HostPlan("r0-client-0", "r0", "client", 0, "10.0.0.2", ""),
        HostPlan("r0-proxy-0", "r0", "proxy", 0, "10.0.0.3", ""),
    ),
    captures=tuple(CapturePlan(f"{host}-eth0.pcap", host) for host in ("r0-client-0", "r0-proxy-0")),
)
SENDER, RECEIVER = (capture.file for capture in PLAN.captures)


def frame(number: int) -> bytes:
    payload = b"".join(CODEC.encode(Subscribe(0, number)))
    return segment(FIRST_SEQ + number * len(payload), payload, src=ENDS[0], dst=ENDS[1])


def write_parts(run: RunDirectory, file: str, records: list[Record]) -> None:
    """Write a part for every second with records."""
    folder = folder_of(run.captures / file)
    folder.mkdir(parents=True)
    for second in {record.t_ns // SECOND for record in records}:
        mine = [record for record in records if record.t_ns // SECOND == second]
        (folder / f"{second}.pcap").write_bytes(pcap_bytes(mine))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def messages_every(step_ns: int, *, count: int, before_s: int) -> list[tuple[int, bytes]]:
    return [((NOW_S - before_s) * SECOND + number * step_ns, frame(number)) for number in range(count)]


def test_both_ends_of_recent_messages_are_matched_and_older_ones_left_out(run: RunDirectory):
    sent = messages_every(SECOND // 10, count=100, before_s=10)
    write_parts(run, SENDER, [Record(t_ns, data) for t_ns, data in sent])
    write_parts(run, RECEIVER, [Record(t_ns + DELAY_NS, data) for t_ns, data in sent])
    found = recent_transfers(run, PLAN, CODEC, (NOW_S - 3) * SECOND)
    rows = found.rows.to_pylist()
    assert [row["cnt"] for row in rows] == list(range(70, 100))
    assert {row["t_complete_ns"] - row["t_sent_ns"] for row in rows} == {DELAY_NS}
    assert {(row["sender"], row["receiver"], row["fate"]) for row in rows} == {
        ("r0-client-0", "r0-proxy-0", "arrived")
    }
    assert found.seen_until_ns == sent[-1][0]


def test_messages_sent_just_now_are_not_called_lost(run: RunDirectory):
    sent = messages_every(SECOND // 10, count=40, before_s=4)
    write_parts(run, SENDER, [Record(t_ns, data) for t_ns, data in sent])
    came = [Record(t_ns + DELAY_NS, data) for t_ns, data in sent[:10]]
    still_alive = Record(sent[-1][0], segment(1, src=("10.0.0.9", 9), dst=("10.0.0.3", 7000)))
    write_parts(run, RECEIVER, [*came, still_alive])
    rows = recent_transfers(run, PLAN, CODEC, sent[0][0]).rows.to_pylist()
    fates = {row["cnt"]: row["fate"] for row in rows}
    last_lost = max(number for number, fate in fates.items() if fate == "lost")
    assert set(fates.values()) == {"arrived", "lost", "unseen"}
    assert sent[-1][0] - sent[last_lost][0] == GRACE_NS
    assert all(fates[number] == "unseen" for number in range(last_lost + 1, 40))


def test_an_incompletely_written_packet_is_ignored(run: RunDirectory):
    sent = messages_every(SECOND // 10, count=30, before_s=3)
    write_parts(run, SENDER, [Record(t_ns, data) for t_ns, data in sent])
    write_parts(run, RECEIVER, [])
    newest = max(folder_of(run.captures / SENDER).iterdir())
    newest.write_bytes(newest.read_bytes()[:-5])
    rows = recent_transfers(run, PLAN, CODEC, sent[0][0]).rows.to_pylist()
    assert [row["cnt"] for row in rows] == list(range(29))


def test_empty_captures_have_no_messages(run: RunDirectory):
    for file in (SENDER, RECEIVER):
        write_parts(run, file, [])
    found = recent_transfers(run, PLAN, CODEC, NOW_S * SECOND)
    assert (found.rows.num_rows, found.seen_until_ns) == (0, None)


def test_joined_captures_have_no_name_that_would_be_left_by_a_kill(
    run: RunDirectory, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    folder, seen = tmp_path_factory.mktemp("temporary"), []
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    index = recent_messages.build_index
    monkeypatch.setattr(
        recent_messages, "build_index", lambda path: seen.append([*folder.iterdir()]) or index(path)
    )
    for file in (SENDER, RECEIVER):
        write_parts(run, file, [])
    recent_transfers(run, PLAN, CODEC, NOW_S * SECOND)
    assert seen == [[], []]


def test_an_experiment_without_captures_of_hosts_says_so(run: RunDirectory):
    with pytest.raises(AnalysisError, match="no host of this experiment is captured"):
        recent_transfers(run, replace(PLAN, captures=()), CODEC, 0)


def test_messages_after_a_gap_in_the_receivers_capture_are_not_called_lost(run: RunDirectory):
    sent = messages_every(SECOND // 10, count=40, before_s=4)
    write_parts(run, SENDER, [Record(t_ns, data) for t_ns, data in sent])
    came = [Record(t_ns + DELAY_NS, data) for t_ns, data in sent]
    write_parts(run, RECEIVER, came[:10] + came[11:])
    rows = recent_transfers(run, PLAN, CODEC, sent[0][0]).rows.to_pylist()
    assert {row["fate"] for row in rows[:10]} == {"arrived"}
    assert {row["fate"] for row in rows[10:]} == {"unseen"}


def test_only_captures_of_the_hosts_and_their_peers_are_read(run: RunDirectory):
    sent = messages_every(SECOND // 10, count=30, before_s=3)
    write_parts(run, SENDER, [Record(t_ns, data) for t_ns, data in sent])
    write_parts(run, RECEIVER, [Record(t_ns + DELAY_NS, data) for t_ns, data in sent])
    stranger = HostPlan("r1-client-0", "r1", "client", 0, "10.1.0.2", "")
    capture = CapturePlan("r1-client-0-eth0.pcap", "r1-client-0")
    plan = replace(PLAN, hosts=(*PLAN.hosts, stranger), captures=(*PLAN.captures, capture))
    silent_since = Record(sent[10][0], segment(1, src=("10.1.0.2", 9), dst=("10.1.0.3", 7000)))
    write_parts(run, capture.file, [silent_since])
    of_one = recent_transfers(run, plan, CODEC, sent[0][0], hosts={"r0-proxy-0"})
    assert (of_one.rows.num_rows, of_one.seen_until_ns) == (30, sent[-1][0])
    of_all = recent_transfers(run, plan, CODEC, sent[0][0])
    assert (of_all.rows.num_rows, of_all.seen_until_ns) == (11, sent[10][0])


MARKERS = MarkerSearch(100, {ENDS[0][0]: frozenset({0})})
EVENT_BYTES = 60
"""Size of a segment: events of 100 bytes span several."""


def test_events_of_programs_are_found_by_their_markers_from_the_middle_of_a_connection_on(run: RunDirectory):
    stream = b"".join(b"framing" + marked(0, seq, 100, NOW_S * SECOND) for seq in range(60))
    pieces = [stream[at : at + EVENT_BYTES] for at in range(0, len(stream), EVENT_BYTES)]
    step_ns = 4 * SECOND // len(pieces)
    sent = [
        (
            NOW_S * SECOND - (len(pieces) - n) * step_ns,
            segment(n * EVENT_BYTES, piece, src=ENDS[0], dst=ENDS[1]),
        )
        for n, piece in enumerate(pieces)
    ][10:]
    write_parts(run, SENDER, [Record(t_ns, data) for t_ns, data in sent])
    write_parts(run, RECEIVER, [Record(t_ns + DELAY_NS, data) for t_ns, data in sent])
    found = recent_transfers(run, PLAN, MARKERS, (NOW_S - 2) * SECOND)
    rows = found.rows.to_pylist()
    assert [row["first_seq"] for row in rows] == list(range(rows[0]["first_seq"], 60))
    assert 25 < len(rows) < 35
    assert {(row["type"], row["sender"], row["receiver"], row["fate"]) for row in rows} == {
        ("NEW_EVENT", "r0-client-0", "r0-proxy-0", "arrived")
    }
    took_ns = [
        row["t_complete_ns"] - row["t_sent_ns"] for row in rows
    ]  # it may begin in one segment, end in another
    assert all(DELAY_NS < each <= DELAY_NS + 2 * step_ns for each in took_ns)
