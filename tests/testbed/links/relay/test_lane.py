"""When and whether a lane lets frames leave, in virtual time: no packet is sent here."""

from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.links.relay import lane as lane_module
from testbed.links.relay.lane import PACE_NS, Hold, Lane
from testbed.links.relay.segments import VNET_BYTES, cut, layout
from tests.testbed.links.relay.frames import Sent, small
from topologies.shape import Shape

MS = 1_000_000  # ns
SEGMENTS = 40
OFFLOADED = Sent(bytes(SEGMENTS * 1448)).frame()
ALONE = [cut(OFFLOADED, layout(OFFLOADED), n, n + 1) for n in range(SEGMENTS)]


def make_lane(shape: Shape, seed: int = 1) -> tuple[Lane, Hold]:
    hold = Hold()
    return Lane(0, shape, Random(seed), hold), hold


def releases(hold: Hold) -> list[tuple[int, bytes]]:
    """(when, what), in the order of leaving."""
    return [(entry[0], entry[3]) for entry in sorted(hold.heap, key=lambda entry: entry[:2])]


def admit_all(lane: Lane, frames: Iterable[bytes], arrival_ns: int = 0) -> None:
    for frame in frames:
        lane.admit(frame, arrival_ns)


def segments_of(frames: Iterable[bytes]) -> list[bytes]:
    """What the frames carry, cut up to the last."""
    return [cut(frame, layout(frame), n, n + 1) for frame in frames for n in range(layout(frame).segments)]


def without_vnet(frames: Iterable[bytes]) -> list[bytes]:
    return [frame[VNET_BYTES:] for frame in frames]


shapes = st.builds(
    Shape,
    delay_us=st.integers(0, 100_000),
    loss=st.sampled_from([0.0, 0.3]),
    rate_bits_per_s=st.sampled_from([None, 10_000_000, 10_000_000_000]),
    queue_packets=st.sampled_from([None, 5]),
)


@given(
    shapes,
    st.lists(
        st.tuples(st.integers(0, 5 * MS), st.sampled_from([small(60), small(1514), OFFLOADED])), max_size=30
    ),
    st.floats(0, 1),
)
def test_nothing_leaves_early_or_overtakes_and_everything_is_accounted_for(
    shape: Shape, traffic: list[tuple[int, bytes]], jitter: float
) -> None:
    jitter_us = int(shape.delay_us * jitter)
    lane, hold = make_lane(
        Shape(shape.delay_us, jitter_us, shape.loss, shape.rate_bits_per_s, shape.queue_packets)
    )
    arrival_ns = sent = 0
    last_ns = 0
    for gap_ns, frame in traffic:
        arrival_ns += gap_ns
        known = len(hold.heap)
        lane.admit(frame, arrival_ns)
        sent += layout(frame).segments
        for entry in sorted(hold.heap, key=lambda entry: entry[1])[known:]:
            assert entry[0] >= arrival_ns + (shape.delay_us - jitter_us) * 1000
            assert entry[0] >= last_ns
            last_ns = entry[0]
    left = segments_of(frame for _, frame in releases(hold))
    assert len(left) == lane.frames
    assert sum(len(segment) - VNET_BYTES for segment in left) == lane.bytes
    assert lane.frames + lane.dropped_loss + lane.dropped_queue == sent


@given(st.sampled_from([0.01, 0.1, 0.5, 1.0]), st.integers(0, 1000))
def test_the_same_segments_are_lost_with_and_without_offloads(loss: float, seed: int) -> None:
    offloaded, offloaded_hold = make_lane(Shape(loss=loss), seed)
    alone, alone_hold = make_lane(Shape(loss=loss), seed)
    admit_all(offloaded, [OFFLOADED] * 5)
    admit_all(alone, ALONE * 5)
    left = segments_of(frame for _, frame in releases(offloaded_hold))
    assert left == [frame for _, frame in releases(alone_hold)]
    assert offloaded.dropped_loss == alone.dropped_loss


def test_loss_is_as_probable_as_asked() -> None:
    lane, _ = make_lane(Shape(loss=0.05))
    admit_all(lane, ALONE * 2500)
    assert lane.dropped_loss == pytest.approx(5000, rel=0.06)


def test_segments_follow_each_other_at_the_rate() -> None:
    lane, hold = make_lane(Shape(delay_us=1000, rate_bits_per_s=10_000_000))
    admit_all(lane, [small(1250)] * 4)
    assert [at for at, _ in releases(hold)] == pytest.approx([2 * MS, 3 * MS, 4 * MS, 5 * MS], abs=10)


@pytest.mark.parametrize("rate_bits_per_s", [10_000_000, 100_000_000, 1_000_000_000])
def test_an_offloaded_frame_takes_as_long_as_its_segments_and_leaves_in_short_pieces(
    rate_bits_per_s: int,
) -> None:
    offloaded, offloaded_hold = make_lane(Shape(rate_bits_per_s=rate_bits_per_s))
    alone, alone_hold = make_lane(Shape(rate_bits_per_s=rate_bits_per_s))
    admit_all(offloaded, [OFFLOADED])
    admit_all(alone, ALONE)
    end_ns = releases(alone_hold)[-1][0]
    pieces = releases(offloaded_hold)
    assert pieces[-1][0] == pytest.approx(end_ns, abs=100)
    segment_ns = end_ns / SEGMENTS
    for (before_ns, _), (at_ns, _) in pairwise([(0, b""), *pieces]):
        assert at_ns - before_ns <= max(PACE_NS, segment_ns) + 10
    assert segments_of(frame for _, frame in pieces) == ALONE


def test_the_queue_takes_so_many_segments_and_drops_what_comes_last_with_and_without_offloads() -> None:
    for frames in ([OFFLOADED], ALONE):
        lane, hold = make_lane(Shape(rate_bits_per_s=1_000_000, queue_packets=10))
        admit_all(lane, frames)
        assert segments_of(frame for _, frame in releases(hold)) == ALONE[:11]  # one is being sent
        assert lane.dropped_queue == SEGMENTS - 11


def test_the_queue_has_room_again_when_segments_were_sent() -> None:
    lane, _ = make_lane(Shape(rate_bits_per_s=10_000_000, queue_packets=3))
    admit_all(lane, [small(1250)] * 6)
    assert lane.dropped_queue == 2
    admit_all(lane, [small(1250)] * 6, arrival_ns=5 * MS // 2)  # the third is being sent
    assert lane.dropped_queue == 2 + 4


def test_time_in_flight_takes_no_room_in_the_queue() -> None:
    lane, _ = make_lane(Shape(delay_us=1_000_000, rate_bits_per_s=10_000_000, queue_packets=1))
    for n in range(100):
        lane.admit(small(1250), n * MS)
    assert (lane.frames, lane.dropped_queue) == (100, 0)


def test_a_blackhole_swallows_what_is_in_flight_and_what_arrives() -> None:
    lane, hold = make_lane(Shape(delay_us=10_000))
    other = Lane(0, Shape(), Random(1), hold)
    admit_all(lane, [small(), OFFLOADED])
    other.admit(small(99), 0)
    lane.change(lane.shape, 5 * MS, blackhole=True)
    lane.admit(small(), 6 * MS)
    assert [len(frame) for _, frame in releases(hold)] == [99 + VNET_BYTES]
    assert (lane.frames, lane.bytes, lane.dropped_blackhole) == (0, 0, SEGMENTS + 2)
    lane.change(lane.shape, 7 * MS, blackhole=False)
    lane.admit(small(), 8 * MS)
    assert releases(hold)[-1][0] == 18 * MS
    assert lane.frames == 1


def test_a_shorter_delay_does_not_let_packets_overtake() -> None:
    lane, hold = make_lane(Shape(delay_us=50_000))
    lane.admit(small(100), 0)
    lane.change(Shape(delay_us=1000), 1 * MS, blackhole=False)
    lane.admit(small(200), 2 * MS)
    lane.admit(small(300), 60 * MS)
    assert [(at, len(frame) - VNET_BYTES) for at, frame in releases(hold)] == [
        (50 * MS, 100),
        (50 * MS, 200),
        (61 * MS, 300),
    ]


def test_a_new_rate_also_holds_for_what_waits() -> None:
    lane, hold = make_lane(Shape(delay_us=1000, rate_bits_per_s=10_000_000))
    admit_all(lane, [small(1250)] * 5)  # sent by 1, 2, 3, 4, 5 ms
    lane.change(Shape(delay_us=1000, rate_bits_per_s=20_000_000), 2 * MS, blackhole=False)
    lane.admit(small(1250), 2 * MS)
    expected = [2 * MS, 3 * MS, 3.5 * MS, 4 * MS, 4.5 * MS, 5 * MS]
    assert [at for at, _ in releases(hold)] == pytest.approx(expected, abs=50)


def test_a_rate_that_is_lifted_lets_go_what_waits() -> None:
    lane, hold = make_lane(Shape(rate_bits_per_s=1_000_000))
    admit_all(lane, [small(1250)] * 5)
    lane.change(Shape(), 1 * MS, blackhole=False)
    assert all(at <= 1 * MS + 10 for at, _ in releases(hold))


def test_what_is_larger_than_the_mtu_does_not_pass() -> None:
    lane, hold = make_lane(Shape(mtu_bytes=1400))
    admit_all(lane, [small(1414), small(1415), OFFLOADED])
    assert len(hold.heap) == 1
    assert lane.dropped_size == 1 + SEGMENTS


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_module, "HELD_BYTES_MAX", 5000)
    lane, hold = make_lane(Shape(delay_us=1000))
    admit_all(lane, [small()] * 8)
    lane.admit(OFFLOADED, 0)
    assert len(hold.heap) == 5
    assert lane.dropped_queue == 3 + SEGMENTS


def test_the_same_seed_loses_the_same() -> None:
    lost = []
    for seed in (1, 1, 2):
        lane, hold = make_lane(Shape(loss=0.2), seed)
        admit_all(lane, ALONE)
        lost.append(without_vnet(frame for _, frame in releases(hold)))
    assert lost[0] == lost[1] != lost[2]
