"""Transfers: one row per message, from what was seen at both ends."""

import pyarrow as pa

from analysis.jobs.matching import match
from analysis.schemas import MESSAGES, TRANSFERS

HOSTS = {"10.0.0.2": "a", "10.0.0.3": "b", "10.0.0.4": "c"}


def seen(direction, offset, first_ns, complete_ns, *, dst="10.0.0.3", advertised=None):
    host = "a" if direction == "out" else HOSTS[dst]
    return dict.fromkeys(MESSAGES.names) | {
        "capture": host, "host": host, "direction": direction, "src": "10.0.0.2", "sport": 7000, "dst": dst,
        "dport": 40_000, "connection": 0, "stream_offset": offset, "length": 30, "t_first_ns": first_ns,
        "t_complete_ns": complete_ns, "type": "ADVERTISEMENT", "retransmitted": direction == "out",
        "advertised": advertised,
    }  # fmt: skip


def matched(*rows, captured=("a", "b", "c")):
    sides = [
        pa.Table.from_pylist([row for row in rows if row["direction"] == direction], schema=MESSAGES)
        for direction in ("out", "in")
    ]
    found = match(*sides, HOSTS, captured)
    assert found.schema == TRANSFERS
    return found.sort_by("t_ns").to_pylist()


def test_a_message_seen_at_both_ends_is_one_transfer_with_all_its_times():
    counters = [{"stream": 1, "cnt": 8}]
    (row,) = matched(seen("out", 0, 100, 110), seen("in", 0, 150, 170, advertised=counters))
    times = ("t_ns", "t_sent_ns", "t_left_ns", "t_arrived_ns", "t_complete_ns")
    assert [row[name] for name in times] == [100, 100, 110, 150, 170]
    assert (row["sender"], row["receiver"], row["fate"]) == ("a", "b", "arrived")
    assert row["retransmitted"]
    assert row["advertised"] == counters


def test_a_message_that_left_and_never_came_is_lost():
    (row,) = matched(seen("out", 0, 100, 110))
    assert (row["fate"], row["t_arrived_ns"], row["t_complete_ns"]) == ("lost", None, None)


def test_a_message_that_came_in_part_is_lost_too():
    (row,) = matched(seen("out", 0, 100, 110), seen("in", 0, 150, None))
    assert (row["fate"], row["t_arrived_ns"]) == ("lost", 150)


def test_without_the_receivers_capture_the_fate_is_unknown():
    (row,) = matched(seen("out", 0, 100, 110), captured=("a",))
    assert row["fate"] == "unseen"


def test_a_message_seen_only_by_its_receiver_counts_from_there():
    (row,) = matched(seen("in", 0, 150, 170))
    assert (row["t_ns"], row["t_sent_ns"], row["fate"]) == (150, None, "arrived")


def test_messages_are_distinguished_by_receiver_and_offset():
    rows = matched(
        seen("out", 0, 100, 110), seen("out", 30, 101, 111), seen("out", 0, 102, 112, dst="10.0.0.4"),
        seen("in", 30, 151, 171), seen("in", 0, 152, 172, dst="10.0.0.4"),
    )  # fmt: skip
    assert [(row["receiver"], row["stream_offset"], row["fate"]) for row in rows] == [
        ("b", 0, "lost"), ("b", 30, "arrived"), ("c", 0, "arrived"),
    ]  # fmt: skip
