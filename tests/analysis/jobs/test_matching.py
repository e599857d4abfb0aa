"""Both ends of messages are matched in any reading order, and missing ones get the right fate."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.jobs.matching import LastOffsets, Matcher, Receivers, at_receivers, match, to_receivers
from analysis.jobs.transfers import match_transfers, sorted_file, tasks
from analysis.schemas import DECODING, MEMBERSHIPS, MESSAGES, TRANSFERS
from experiments.records.rundir import RunDirectory
from tests.run_json import set_run

HOSTS = {"10.0.0.2": "a", "10.0.0.3": "b", "10.0.0.4": "c"}
ALL = frozenset(HOSTS.values())
LENGTH = 30
Row = dict[str, Any]
Seen = tuple[int, int, int]
"""Which connection, which message of it, and when its first byte was seen."""


def row(direction: str, seen: Seen, *, whole: bool = True, dst: str = "10.0.0.3") -> Row:
    connection, number, t_ns = seen
    host = "a" if direction == "out" else HOSTS[dst]
    return dict.fromkeys(MESSAGES.names) | {
        "capture": host, "host": host, "direction": direction, "src": "10.0.0.2", "sport": 7000, "dst": dst,
        "dport": 40_000, "connection": connection, "stream_offset": number * LENGTH, "length": LENGTH,
        "t_first_ns": t_ns, "t_complete_ns": t_ns + 5 if whole else None, "type": "SUBSCRIBE",
        "retransmitted": False,
    }  # fmt: skip


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, MESSAGES)


def known(found: pa.Table) -> list[tuple[Any, ...]]:
    """Return rows of TRANSFERS sorted by identity."""
    names = ("receiver", "connection", "stream_offset", "t_sent_ns", "t_arrived_ns", "t_complete_ns", "fate")
    return sorted((tuple(row[name] for name in names) for row in found.to_pylist()), key=repr)


def fates(*rows: Row, receivers: Receivers) -> dict[int, str]:
    """Return the fate of each message, by its number."""
    sides = [[row for row in rows if row["direction"] == direction] for direction in ("out", "in")]
    found = match(table(sides[0]), table(sides[1]), HOSTS, receivers).to_pylist()
    return {row["stream_offset"] // LENGTH: row["fate"] for row in found}


numbers = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), unique=True, max_size=14)


@st.composite
def side(draw: st.DrawFn, direction: str) -> list[list[Row]]:
    """Draw one side's observations in stretches; each connection's messages are in stream order."""
    seen = draw(numbers)
    streams = {one: sorted(number for other, number in seen if other == one) for one, _ in seen}
    rows = []
    for t_ns, (connection, _) in enumerate(seen):
        rows.append(row(direction, (connection, streams[connection].pop(0), t_ns), whole=draw(st.booleans())))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    return [rows[first:last] for first, last in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


@given(sent=side("out"), arrived=side("in"), draw=st.data())
@pytest.mark.slow
def test_matching_in_any_interleaving_equals_matching_at_once(
    sent: list[list[Row]], arrived: list[list[Row]], draw: st.DataObject
) -> None:
    all_sent, all_arrived = (table([row for stretch in one for row in stretch]) for one in (sent, arrived))
    receivers = Receivers(ALL, undecoded=frozenset({("10.0.0.2", "10.0.0.3", 7000, 40_000, 1)}))
    left = LastOffsets.from_table(to_receivers(all_sent, HOSTS, {}))
    matcher = Matcher(left, LastOffsets.from_table(at_receivers(all_arrived)), HOSTS, receivers)
    turns = draw.draw(st.permutations(["sent"] * len(sent) + ["arrived"] * len(arrived)))
    waiting = {"sent": list(sent), "arrived": list(arrived)}
    found = []
    for turn in turns:
        stretch = table(waiting[turn].pop(0))
        nothing = MESSAGES.empty_table()
        found.append(matcher.take(*((stretch, nothing) if turn == "sent" else (nothing, stretch))))
    assert known(pa.concat_tables(found)) == known(match(all_sent, all_arrived, HOSTS, receivers))


@given(sent=side("out"), arrived=side("in"))
@pytest.mark.slow
def test_each_message_is_one_row_with_the_times_of_both_ends(
    sent: list[list[Row]], arrived: list[list[Row]]
) -> None:
    ends = [
        {(row["connection"], row["stream_offset"]): row for stretch in one for row in stretch}
        for one in (sent, arrived)
    ]
    found = match(*(table(list(end.values())) for end in ends), HOSTS, ALL)
    assert found.schema == TRANSFERS
    told = {(row["connection"], row["stream_offset"]): row for row in found.to_pylist()}
    assert len(told) == found.num_rows
    assert set(told) == set(ends[0]) | set(ends[1])
    for key, transfer in told.items():
        left, came = (end.get(key, {}) for end in ends)
        assert transfer["t_sent_ns"] == left.get("t_first_ns")
        assert transfer["t_left_ns"] == left.get("t_complete_ns")
        assert transfer["t_arrived_ns"] == came.get("t_first_ns")
        assert transfer["t_ns"] == (left or came)["t_first_ns"]
        assert transfer["fate"] == ("lost" if came.get("t_complete_ns") is None else "arrived")


CONNECTION = ("10.0.0.2", "10.0.0.3", 7000, 40_000, 0)
SENT = [row("out", (0, number, number)) for number in range(3)]


@pytest.mark.parametrize(
    ("receivers", "overtaken", "last"),
    [
        (Receivers(ALL), "lost", "lost"),
        (Receivers(ALL - {"b"}), "unseen", "unseen"),
        (Receivers(ALL, with_drops=frozenset("b")), "unseen", "unseen"),
        (Receivers(ALL, truncated=frozenset("b")), "lost", "unseen"),
        (Receivers(ALL, undecoded=frozenset({CONNECTION})), "lost", "unseen"),
        (Receivers(ALL, truncated=frozenset("c"), with_drops=frozenset("c")), "lost", "lost"),
    ],
    ids=["whole", "not captured", "dropped packets", "truncated", "undecoded", "another's is bad"],
)
def test_a_message_is_lost_only_if_the_receivers_capture_shows_it(
    receivers: Receivers, overtaken: str, last: str
) -> None:
    came = row("in", (0, 1, 5))
    assert fates(*SENT, came, receivers=receivers) == {0: overtaken, 1: "arrived", 2: last}


GROUP = "239.1.2.3"
MEMBERS = {GROUP: {"a": [(0, None)], "b": [(0, None)], "c": [(5, 12), (18, None)]}}


def to_group(direction: str, number: int, t_ns: int, host: str = "a") -> Row:
    return row(direction, (0, number, t_ns)) | {"host": host, "dst": GROUP}


def test_a_datagram_to_a_group_is_a_message_to_each_host_that_was_a_member() -> None:
    sent = [to_group("out", number, 10 * number) for number in range(3)]
    came = [to_group("in", number, 10 * number + 3, host) for number, host in ((0, "b"), (2, "b"), (0, "c"))]
    receivers = Receivers(ALL, truncated=frozenset("c"), members=MEMBERS)
    found = match(table(sent), table(came), HOSTS, receivers).to_pylist()
    assert sorted((row["receiver"], row["stream_offset"] // LENGTH, row["fate"]) for row in found) == [
        ("b", 0, "arrived"),
        ("b", 1, "lost"),
        ("b", 2, "arrived"),
        ("c", 0, "arrived"),  # it left before the host joined
        ("c", 1, "unseen"),
        ("c", 2, "unseen"),
    ]
    assert {(row["sender"], row["dst"]) for row in found} == {("a", GROUP)}
    left = match(table([to_group("out", 0, 14)]), table([]), HOSTS, Receivers(ALL, members=MEMBERS))
    assert left.column("receiver").to_pylist() == ["b"]


def test_a_datagram_to_a_group_without_members_is_one_unseen_message() -> None:
    [found] = match(table([to_group("out", 0, 1)]), table([]), HOSTS, ALL).to_pylist()
    assert (found["receiver"], found["fate"]) == (None, "unseen")


def test_files_read_row_group_by_row_group_give_the_same_in_order_of_time(tmp_path: Path) -> None:
    sent = [row("out", (number % 3, number // 3, 100 * number)) for number in range(60)]
    came = [row("in", (one["connection"], one["stream_offset"] // LENGTH, one["t_first_ns"] + 35))
            for number, one in enumerate(sent) if number % 7]  # fmt: skip
    late = [came.pop(4)]  # of a connection that stalled
    came = [one for one in came if one["connection"] != late[0]["connection"] or one["t_first_ns"] < 400]
    results = []
    for rows in (1000, 5):
        messages, folder = tmp_path / f"messages-{rows}", tmp_path / f"transfers-{rows}"
        messages.mkdir()
        folder.mkdir()
        for host, seen in (("a", sent), ("b", [*came, *late])):
            pq.write_table(table(seen), messages / f"part-{host}.parquet", row_group_size=rows)
        match_transfers("a", messages, folder, HOSTS, Receivers(frozenset("ab")))
        assert [path.name for path in folder.iterdir()] == ["part-a.parquet"]
        results.append(pq.read_table(folder / "part-a.parquet"))
    assert results[0].num_rows == len(sent)
    for found in results:
        times = found.column("t_ns").to_pylist()
        assert times == sorted(times)
    assert results[0].equals(results[1])


def test_a_failed_writer_leaves_no_file(tmp_path: Path) -> None:
    rows = match(table(SENT), table([]), HOSTS, ALL)

    def fail() -> None:
        with sorted_file(tmp_path / "part-a.parquet", TRANSFERS, "t_ns", [1]) as write:
            write(rows)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_runs_record_names_the_inconclusive_captures(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    hosts = {f"10.0.0.{n}": name for n, name in enumerate(("whole", "dropping", "died", "damaged", "absent"))}
    drops = {"whole": 0, "dropping": 3, "died": None, "damaged": 0}
    captures = [
        {"file": f"captures/{name}-eth0.pcap", "host": name, "kernel_drops": n} for name, n in drops.items()
    ]
    set_run(run, captures=captures)
    for name in ("messages", "decoding", "captures", "memberships"):
        run.table(name).mkdir(parents=True)
    for name in drops:
        pq.write_table(MESSAGES.empty_table(), run.table("messages") / f"part-{name}.parquet")
    pq.write_table(MEMBERSHIPS.empty_table(), run.table("memberships") / "part-a.parquet")
    columns = pa.schema([field.with_nullable(nullable=True) for field in DECODING])  # most are not looked at
    stopped = dict(zip(("src", "dst", "sport", "dport"), CONNECTION, strict=False)) | {"stopped": "a gap"}
    decoding = [{**stopped, "direction": way, "connection": n} for n, way in enumerate(("in", "out"))]
    pq.write_table(pa.Table.from_pylist(decoding, columns), run.table("decoding") / "part-a.parquet")
    damaged = [{"capture": "damaged-eth0", "problem": "cut off"}, {"capture": "whole-eth0", "problem": None}]
    pq.write_table(pa.Table.from_pylist(damaged), run.table("captures") / "part-0.parquet")
    told = {task.args[0]: task.args[-1] for task in tasks(run, hosts, tmp_path)}
    assert set(told) == set(drops)
    assert told["whole"] == Receivers(
        captured=frozenset(drops),
        with_drops=frozenset({"dropping"}),
        truncated=frozenset({"died", "damaged"}),
        undecoded=frozenset({CONNECTION}),
    )
