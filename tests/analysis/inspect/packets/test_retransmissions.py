"""Retransmissions: for each segment its first time and its repetitions, compared with a plain loop over
bytes.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from analysis.inspect.packets.filters import Query, codec_of, make_filter
from analysis.inspect.packets.retransmissions import (
    Retransmission,
    SeenBytes,
    join_sightings,
    retransmissions,
)
from analysis.timelines.run_metadata import read_metadata
from tests.analysis.inspect.packets.small_run import DRIVER, PROXY_2
from tests.analysis.timelines.world import MS, ZERO


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 12)), max_size=12))
def test_a_segment_counts_as_often_as_its_most_frequent_byte(segments):
    seen, first, times = SeenBytes(), {}, {}
    for t_ns, (start, length) in enumerate(segments):
        for byte in range(start, start + length):
            first.setdefault(byte, t_ns)
            times[byte] = times.get(byte, 0) + 1
        covered = range(start, start + length)
        expected = min(first[byte] for byte in covered), max(times[byte] for byte in covered)
        assert seen.see(start, start + length, t_ns) == expected


def found(run, **options):
    record = run.read_run()
    metadata = read_metadata(record)
    wanted = make_filter(replace(Query(), **options), metadata, codec_of(record.plan).by_name)
    return [
        (again.hosts, (again.first_ns - ZERO) / MS, (again.t_ns - ZERO) / MS, again.nth, again.stream_offset)
        for again in retransmissions(run, wanted, ("type",))
    ]


DUPLICATE = [((DRIVER, PROXY_2), 4940, 4955, 2, 128)]
LOST = [((PROXY_2,), 5010, 5260, 2, 166)]


ROW = {
    "sender": "a", "src": "10.0.0.1", "sport": 1, "dst": "10.0.0.2", "dport": 2, "connection": 0,
}  # fmt: skip


def sight(host, t_ns, offset=0, length=10):
    return Retransmission(t_ns, 0, 2, (host,), offset, length, (ROW,))


def joined(*sights):
    return [(again.t_ns, "".join(again.hosts)) for again in join_sightings(sights)]


def test_a_repetition_seen_at_both_ends_counts_once():
    assert joined(sight("a", 10), sight("b", 20)) == [(10, "ab")]
    assert joined(sight("a", 10), sight("a", 15), sight("b", 20), sight("b", 25)) == [(10, "ab"), (15, "ab")]


def test_a_lost_repetition_is_seen_only_by_its_sender():
    assert joined(sight("a", 10), sight("a", 15), sight("b", 20)) == [(10, "a"), (15, "ab")]
    assert joined(sight("a", 10), sight("b", 20, offset=10)) == [(10, "a"), (20, "b")]


def test_a_duplicate_of_the_network_is_seen_only_by_the_receiver():
    assert joined(sight("b", 5), sight("a", 10)) == [(5, "b"), (10, "a")]
    assert joined(sight("a", 10), sight("b", 10 + 11 * 10**9)) == [(10, "a"), (10 + 11 * 10**9, "b")]


def test_a_segment_that_came_in_parts_is_one_repetition():
    parts = sight("b", 20, 0, 4), sight("b", 21, 4, 6)
    assert joined(sight("a", 10), *parts) == [(10, "ab")]


def test_each_repetition_comes_once_with_the_hosts_that_saw_it(small_run):
    assert found(small_run) == DUPLICATE + LOST


def test_the_time_is_that_of_the_second_sight(small_run):
    assert found(small_run, from_s=5) == LOST
    assert found(small_run, to_s=5) == DUPLICATE
    assert found(small_run, from_s=5, to_s=5.2) == []


def test_retransmissions_use_the_same_message_filter(small_run):
    assert found(small_run, types=("publish",)) == DUPLICATE
    assert found(small_run, links=("r2-r3",)) == LOST
    assert found(small_run, types=("hello",)) == []
