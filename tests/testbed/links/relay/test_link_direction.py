"""Departure times and drops of a link direction, in virtual time. Sends no packets."""

from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.relay import link_direction as link_direction_module
from testbed.links.relay.link_direction import PACE_NS, DelayQueue, LinkDirection
from testbed.links.relay.offload import VNET_BYTES, cut, segmentation
from tests.testbed.links.relay.vnet_frames import Sent, small
from topologies.link_parameters import LinkParameters

MS = 1_000_000  # ns
SEGMENTS = 40
OFFLOADED = Sent(bytes(SEGMENTS * 1448)).frame()
ALONE = [cut(OFFLOADED, segmentation(OFFLOADED), n, n + 1) for n in range(SEGMENTS)]


def make_link_direction(parameters: LinkParameters, seed: int = 1) -> tuple[LinkDirection, DelayQueue]:
    delay_queue = DelayQueue()
    return LinkDirection(0, parameters, Random(seed), delay_queue), delay_queue


def releases(delay_queue: DelayQueue) -> list[tuple[int, bytes]]:
    """Return (time, frame) in the order of leaving."""
    return [(entry[0], entry[3]) for entry in sorted(delay_queue.heap, key=lambda entry: entry[:2])]


def admit_all(link_direction: LinkDirection, frames: Iterable[bytes], arrival_ns: int = 0) -> None:
    for frame in frames:
        link_direction.admit(frame, arrival_ns)


def segments_of(frames: Iterable[bytes]) -> list[bytes]:
    """Return the frames' content as segments."""
    return [
        cut(frame, segmentation(frame), n, n + 1)
        for frame in frames
        for n in range(segmentation(frame).segments)
    ]


parameters_of = st.builds(
    LinkParameters,
    delay_us=st.integers(0, 100_000),
    loss=st.sampled_from([0.0, 0.3]),
    rate_bits_per_s=st.sampled_from([None, 10_000_000, 10_000_000_000]),
    queue_packets=st.sampled_from([None, 5]),
)


@given(
    parameters_of,
    st.lists(
        st.tuples(st.integers(0, 5 * MS), st.sampled_from([small(60), small(1514), OFFLOADED])), max_size=30
    ),
    st.floats(0, 1),
)
def test_no_frame_leaves_early_or_overtakes_and_all_are_counted(parameters, traffic, jitter):
    jitter_us = int(parameters.delay_us * jitter)
    link_direction, delay_queue = make_link_direction(
        LinkParameters(
            parameters.delay_us,
            jitter_us,
            parameters.loss,
            parameters.rate_bits_per_s,
            parameters.queue_packets,
        )
    )
    arrival_ns = sent = 0
    last_ns = 0
    for gap_ns, frame in traffic:
        arrival_ns += gap_ns
        known = len(delay_queue.heap)
        link_direction.admit(frame, arrival_ns)
        sent += segmentation(frame).segments
        for entry in sorted(delay_queue.heap, key=lambda entry: entry[1])[known:]:
            assert entry[0] >= arrival_ns + (parameters.delay_us - jitter_us) * 1000
            assert entry[0] >= last_ns
            last_ns = entry[0]
    left = segments_of(frame for _, frame in releases(delay_queue))
    assert len(left) == link_direction.frames
    assert sum(len(segment) - VNET_BYTES for segment in left) == link_direction.bytes
    assert link_direction.frames + link_direction.dropped_loss + link_direction.dropped_queue == sent


@given(st.sampled_from([0.01, 0.1, 0.5, 1.0]), st.integers(0, 1000))
def test_the_same_segments_are_lost_with_and_without_offloads(loss, seed):
    offloaded, offloaded_hold = make_link_direction(LinkParameters(loss=loss), seed)
    alone, alone_hold = make_link_direction(LinkParameters(loss=loss), seed)
    admit_all(offloaded, [OFFLOADED] * 5)
    admit_all(alone, ALONE * 5)
    left = segments_of(frame for _, frame in releases(offloaded_hold))
    assert left == [frame for _, frame in releases(alone_hold)]
    assert offloaded.dropped_loss == alone.dropped_loss


@pytest.mark.parametrize("rate_bits_per_s", [10_000_000, 100_000_000, 1_000_000_000])
def test_an_offloaded_frame_takes_as_long_as_its_segments_and_leaves_in_short_pieces(rate_bits_per_s):
    offloaded, offloaded_hold = make_link_direction(LinkParameters(rate_bits_per_s=rate_bits_per_s))
    alone, alone_hold = make_link_direction(LinkParameters(rate_bits_per_s=rate_bits_per_s))
    admit_all(offloaded, [OFFLOADED])
    admit_all(alone, ALONE)
    end_ns = releases(alone_hold)[-1][0]
    pieces = releases(offloaded_hold)
    assert pieces[-1][0] == pytest.approx(end_ns, abs=100)
    segment_ns = end_ns / SEGMENTS
    for (before_ns, _), (at_ns, _) in pairwise([(0, b""), *pieces]):
        assert at_ns - before_ns <= max(PACE_NS, segment_ns) + 10
    assert segments_of(frame for _, frame in pieces) == ALONE


def test_a_full_queue_drops_the_last_segments_with_and_without_offloads():
    for frames in ([OFFLOADED], ALONE):
        link_direction, delay_queue = make_link_direction(
            LinkParameters(rate_bits_per_s=1_000_000, queue_packets=10)
        )
        admit_all(link_direction, frames)
        assert segments_of(frame for _, frame in releases(delay_queue)) == ALONE[:11]  # one is being sent
        assert link_direction.dropped_queue == SEGMENTS - 11


def test_the_queue_has_room_again_when_segments_were_sent():
    link_direction, _ = make_link_direction(LinkParameters(rate_bits_per_s=10_000_000, queue_packets=3))
    admit_all(link_direction, [small(1250)] * 6)
    assert link_direction.dropped_queue == 2
    admit_all(link_direction, [small(1250)] * 6, arrival_ns=5 * MS // 2)  # the third is being sent
    assert link_direction.dropped_queue == 2 + 4


def test_time_in_flight_takes_no_room_in_the_queue():
    link_direction, _ = make_link_direction(
        LinkParameters(delay_us=1_000_000, rate_bits_per_s=10_000_000, queue_packets=1)
    )
    for n in range(100):
        link_direction.admit(small(1250), n * MS)
    assert (link_direction.frames, link_direction.dropped_queue) == (100, 0)


def test_a_blackhole_drops_frames_in_flight_and_later_ones():
    link_direction, delay_queue = make_link_direction(LinkParameters(delay_us=10_000))
    other = LinkDirection(0, LinkParameters(), Random(1), delay_queue)
    admit_all(link_direction, [small(), OFFLOADED])
    other.admit(small(99), 0)
    link_direction.change(link_direction.parameters, 5 * MS, blackhole=True)
    link_direction.admit(small(), 6 * MS)
    assert [len(frame) for _, frame in releases(delay_queue)] == [99 + VNET_BYTES]
    assert (link_direction.frames, link_direction.bytes, link_direction.dropped_blackhole) == (
        0,
        0,
        SEGMENTS + 2,
    )
    link_direction.change(link_direction.parameters, 7 * MS, blackhole=False)
    link_direction.admit(small(), 8 * MS)
    assert releases(delay_queue)[-1][0] == 18 * MS
    assert link_direction.frames == 1


def test_a_shorter_delay_does_not_let_packets_overtake():
    link_direction, delay_queue = make_link_direction(LinkParameters(delay_us=50_000))
    link_direction.admit(small(100), 0)
    link_direction.change(LinkParameters(delay_us=1000), 1 * MS, blackhole=False)
    link_direction.admit(small(200), 2 * MS)
    link_direction.admit(small(300), 60 * MS)
    assert [(at, len(frame) - VNET_BYTES) for at, frame in releases(delay_queue)] == [
        (50 * MS, 100),
        (50 * MS, 200),
        (61 * MS, 300),
    ]


def test_a_new_rate_also_applies_to_queued_frames():
    link_direction, delay_queue = make_link_direction(
        LinkParameters(delay_us=1000, rate_bits_per_s=10_000_000)
    )
    admit_all(link_direction, [small(1250)] * 5)  # sent by 1, 2, 3, 4, 5 ms
    link_direction.change(LinkParameters(delay_us=1000, rate_bits_per_s=20_000_000), 2 * MS, blackhole=False)
    link_direction.admit(small(1250), 2 * MS)
    expected = [2 * MS, 3 * MS, 3.5 * MS, 4 * MS, 4.5 * MS, 5 * MS]
    assert [at for at, _ in releases(delay_queue)] == pytest.approx(expected, abs=50)


def test_frames_larger_than_the_mtu_do_not_pass():
    link_direction, delay_queue = make_link_direction(LinkParameters(mtu_bytes=1400))
    admit_all(link_direction, [small(1414), small(1415), OFFLOADED])
    assert len(delay_queue.heap) == 1
    assert link_direction.dropped_size == 1 + SEGMENTS


def test_of_an_offloaded_frame_only_segments_within_the_mtu_pass():
    link_direction, delay_queue = make_link_direction(LinkParameters(mtu_bytes=1400))
    admit_all(link_direction, [Sent(bytes(SEGMENTS * 1448 - 200)).frame()])
    assert link_direction.dropped_size == SEGMENTS - 1
    [(_, passed)] = releases(delay_queue)
    assert 1248 < len(passed) < 1448


def test_held_bytes_are_bounded(monkeypatch):
    monkeypatch.setattr(link_direction_module, "QUEUED_BYTES_MAX", 5000)
    link_direction, delay_queue = make_link_direction(LinkParameters(delay_us=1000))
    admit_all(link_direction, [small()] * 8)
    link_direction.admit(OFFLOADED, 0)
    assert len(delay_queue.heap) == 5
    assert link_direction.dropped_queue == 3 + SEGMENTS
