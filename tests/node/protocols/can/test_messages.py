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
    """Return the message after encoding and decoding."""
    (frame,) = frames_in(b"".join(CODEC.encode(message)))
    return CODEC.decode(frame)


def with_sides(*sides):
    """Return messages with a zone of these sides."""
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
    """Return messages with this point."""
    point = (Coordinate(0.5), Coordinate(at))
    return [Join(1, 2, 3, point), Find(1, 0, point), Route(0, 0, Join(1, 2, 3, point))]


def test_zones_and_points_of_the_space_and_more_zones_than_a_byte_counts_are_read():
    many = Claim(1, 2, 3, 1_000, 0, (ZoneSide(0.0, 1.0),))
    for message in (*with_sides((0.0, 1.0), (0.25, 0.5)), *with_point(1.0), many):
        assert again(message) == message


REFUSED = [
    *(("with a zone from", with_sides((0.0, 1.0), side)) for side in NO_SIDES),
    *(("with a coordinate", with_point(at)) for at in NO_POINTS),
    *(("bytes of edges", [Handed(0, bytes(n)), RecoverAt(1, 2, 0, 0, bytes(n))]) for n in (1, 8, 24)),
]


@pytest.mark.parametrize(("reason", "messages"), REFUSED)
def test_invalid_zones_and_points_are_refused(reason, messages):
    for message in messages:
        with pytest.raises(RemoteProtocolError, match=reason):
            again(message)
