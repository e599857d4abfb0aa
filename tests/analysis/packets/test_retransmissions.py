"""What was seen again: of each segment the first time and how often, as a plain loop over bytes has it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from analysis.packets.filters import Asked, codec_of, make_filter
from analysis.packets.retransmissions import _Seen, retransmissions
from analysis.timelines.facts import read_facts
from tests.analysis.packets.small_run import DRIVER, PROXY_2
from tests.analysis.timelines.world import MS, ZERO


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 12)), max_size=12))
def test_a_segment_was_seen_as_often_as_the_byte_of_it_that_was_seen_most(segments):
    seen, first, times = _Seen(), {}, {}
    for t_ns, (start, length) in enumerate(segments):
        for byte in range(start, start + length):
            first.setdefault(byte, t_ns)
            times[byte] = times.get(byte, 0) + 1
        covered = range(start, start + length)
        expected = min(first[byte] for byte in covered), max(times[byte] for byte in covered)
        assert seen.see(start, start + length, t_ns) == expected


def found(run, **options):
    content = run.read_run()
    facts = read_facts(content)
    wanted = make_filter(replace(Asked(), **options), facts, codec_of(content).by_name)
    return [
        (again.host, (again.first_ns - ZERO) / MS, (again.t_ns - ZERO) / MS, again.nth, again.stream_offset)
        for again in retransmissions(run, wanted, ("type",))
    ]


DUPLICATE = [(DRIVER, 4940, 4955, 2, 128), (PROXY_2, 4942, 4957, 2, 128)]
LOST = [(PROXY_2, 5010, 5260, 2, 166)]


def test_each_host_that_saw_a_segment_twice_says_so(small_run):
    assert found(small_run) == DUPLICATE + LOST


def test_the_time_is_that_of_the_second_sight(small_run):
    assert found(small_run, from_s=5) == LOST
    assert found(small_run, to_s=5) == DUPLICATE
    assert found(small_run, from_s=5, to_s=5.2) == []


def test_messages_are_chosen_as_everywhere(small_run):
    assert found(small_run, types=("publish",)) == DUPLICATE
    assert found(small_run, links=("r2-r3",)) == LOST
    assert found(small_run, types=("hello",)) == []
