"""Received zones and points of the space are valid, or are refused when read."""

import struct
from math import inf, nan

import pytest

from node.core.errors import RemoteProtocolError
from node.core.framing import frames_in
from node.protocols.can.messages import Claim, Coordinate, Find, Grant, Join, Route, ZoneSide
from node.protocols.meghdoot.messages import CODEC, Handed, Recover, RecoverAt

NO_SIDES = [(0.5, 0.5), (0.6, 0.4), (nan, 1.0), (0.0, nan), (-0.1, 0.5), (0.5, 1.5), (0.0, inf)]
NO_POINTS = [nan, -0.1, 1.5, inf]


def again(message):
    """As the other one reads it."""
    (frame,) = frames_in(b"".join(CODEC.encode(message)))
    return CODEC.decode(frame)


def with_sides(*sides):
    """Messages that have a zone with these."""
    rows = tuple(ZoneSide(*each) for each in sides)
    edges = b"".join(struct.pack(">d", each) for each in (*(a for a, _ in sides), *(b for _, b in sides)))
    return [
        Claim(1, 2, 3, 1, 0, rows),
        Grant(1, 2, 0, rows),
        Handed(0, edges),
        Recover(1, 2, 0, 0, 7, edges),
        RecoverAt(1, 2, 0, 0, edges),
    ]


def with_point(at):
    """Messages that have a point."""
    point = (Coordinate(0.5), Coordinate(at))
    return [Join(1, 2, 3, point), Find(1, 0, point), Route(0, 0, Join(1, 2, 3, point))]


@pytest.mark.parametrize(
    "message", with_sides((0.0, 1.0), (0.25, 0.5)) + with_point(1.0), ids=lambda each: type(each).__name__
)
def test_zones_and_points_of_the_space_are_read(message):
    assert again(message) == message


@pytest.mark.parametrize("side", NO_SIDES, ids=str)
def test_invalid_zones_are_refused(side):
    for message in with_sides((0.0, 1.0), side):
        with pytest.raises(RemoteProtocolError, match="with a zone from"):
            again(message)


@pytest.mark.parametrize("at", NO_POINTS, ids=str)
def test_invalid_points_are_refused(at):
    for message in with_point(at):
        with pytest.raises(RemoteProtocolError, match="with a coordinate"):
            again(message)


@pytest.mark.parametrize("size", [1, 8, 24])
def test_edges_come_in_pairs(size):
    for message in (Handed(0, bytes(size)), RecoverAt(1, 2, 0, 0, bytes(size))):
        with pytest.raises(RemoteProtocolError, match="bytes of edges"):
            again(message)


def test_a_node_may_have_more_zones_than_a_byte_counts():
    claim = Claim(1, 2, 3, 1_000, 0, (ZoneSide(0.0, 1.0),))
    assert again(claim) == claim
