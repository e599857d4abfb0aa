"""A stream's time advances at its own pace, independent of the stamping node and its clock."""

import pytest

from node.protocols.sprinkler.stream_clock import StreamClock


def test_a_new_stream_has_its_first_heads_time():
    clock = StreamClock()
    assert [clock.stamp_us(now_us) for now_us in (70, 80, 95)] == [70, 80, 95]


@pytest.mark.parametrize("own_us", [5, 1_000_000])
def test_a_successors_clock_advances_at_the_same_pace(own_us):
    clock = StreamClock()
    clock.observe(500, own_us)
    clock.observe(510, own_us + 10)
    assert clock.stamp_us(own_us + 100) == 600


def test_a_delayed_event_does_not_set_the_time_back():
    clock = StreamClock()
    clock.observe(500, 100)
    clock.observe(501, 400)
    assert clock.stamp_us(400) == 800


def test_stamps_never_decrease():
    clock = StreamClock()
    clock.observe(900, 100)
    assert clock.stamp_us(90) == 900
