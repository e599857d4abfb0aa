"""Whose frames are admitted next, and that what waits for it counts as held. No packet is sent here."""

from random import Random

import pytest

from testbed.links.relay import lane as lane_module
from testbed.links.relay.backlog import Backlog
from testbed.links.relay.lane import Hold, Lane
from testbed.links.relay.ring import Frame
from testbed.links.relay.way import Way
from tests.testbed.links.relay.frames import small
from topologies.shape import Shape

MANY = 5000  # frames of which a portion is a small part
SIZE = len(small())
ALL_BYTES = 1 << 30


class Arrivals:
    """A port at which some frames have arrived."""

    def __init__(self, count: int) -> None:
        self.left: list[Frame] = []
        self._frames: list[Frame] = [(0, small())] * count

    @property
    def is_empty(self) -> bool:
        return not self._frames

    def receive(self) -> list[Frame]:
        frames, self._frames = self._frames, []
        return frames


def make_way(name: str, hold: Hold, arrived: int = 0) -> Way:
    return Way(name, "forward", Arrivals(arrived), Lane(0, Shape(), Random(1), hold), hold)  # type: ignore[arg-type]


def test_a_burst_on_one_link_keeps_the_others_waiting_for_one_portion() -> None:
    hold, backlog = Hold(), Backlog()
    burst, few, more = (make_way(name, hold, count) for name, count in [("a", MANY), ("b", 10), ("c", MANY)])
    for way in (burst, few, more):
        way.take(0)
        backlog.add(way)
    backlog.admit_portion()
    assert (few.lane.frames, more.lane.frames) == (0, 0)
    backlog.admit_portion()
    assert few.lane.frames == 10  # and the rest of the portion is for the next
    assert 0 < more.lane.frames < burst.lane.frames < MANY / 10
    while backlog:
        backlog.admit_portion()
    assert (burst.lane.frames, more.lane.frames) == (MANY, MANY)


def test_more_of_a_waiting_link_does_not_change_whose_turn_it_is() -> None:
    hold, backlog = Hold(), Backlog()
    ways = [make_way(name, hold, MANY) for name in "abc"]
    for way in ways:
        way.take(0)
        backlog.add(way)
    for _ in range(9):
        backlog.admit_portion()
        backlog.add(ways[0])
    assert len({way.lane.frames for way in ways}) == 1


def test_what_waits_to_be_admitted_counts_as_held_and_once() -> None:
    hold = Hold()
    way = make_way("a", hold, arrived=3)
    for _ in range(2):
        way.hand_over(0, small())
    assert hold.held_bytes == 2 * SIZE
    way.take(0)
    assert hold.held_bytes == 5 * SIZE
    way.admit(1)
    assert (len(hold.heap), hold.held_bytes) == (1, 5 * SIZE)
    way.admit(ALL_BYTES)
    assert (len(hold.heap), hold.held_bytes) == (5, 5 * SIZE)


def test_no_more_is_handed_over_than_may_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_module, "HELD_BYTES_MAX", 20 * SIZE)
    hold = Hold()
    sender, receiver = make_way("a", hold), make_way("b", hold)
    for _ in range(100):  # while the relay has no turn for the receiver
        for _ in range(5):
            sender.lane.admit(small(), 0)
        while hold.heap:
            release_ns, _, _, frame = hold.heap.pop()
            hold.held_bytes -= len(frame)
            receiver.hand_over(release_ns, frame)
    assert len(receiver.handed) == 21
    assert sender.lane.dropped_queue == 500 - 21
    assert hold.held_bytes == 21 * SIZE
