"""A doubtful part of a zone stays doubtful wherever the zone goes, each part separately."""

from types import SimpleNamespace

from node.core.content.content import ContentAttribute
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.messages import Handed
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.zones.doubts import DoubtfulZones

SPACE = Space((ContentAttribute("price", "real", 0.0, 100.0),))
UPPER, MIDDLE, LOWER = (Zone((low, 0.0), (high, 1.0)) for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 1.0)))
WHOLE = Zone((0.0, 0.0), (1.0, 1.0))
GIVER, TAKER = 1, 2


def doubts_of():
    """Return the doubts of one peer, and its messages."""
    said = []
    mail = SimpleNamespace(
        now_us=0, own=GIVER, send=lambda to, message: said.append(message), emit=said.append
    )
    doubts = DoubtfulZones(
        MeghdootParameters(),
        mail,
        SPACE,
        lambda zone, to: None,
        is_own=lambda zone: True,
        is_copy=lambda zone: False,
    )
    return doubts, said


def zones(doubts):
    return {each.zone for each in doubts}


def given(doubted, zone):
    """Return a peer with doubts that gives a zone away, and the zones that it hands over in doubt."""
    giver, said = doubts_of()
    for each in doubted:
        giver.taken_over(each)
    giver.give(zone, TAKER)
    return giver, said, [(giver.zone_of(each.edges), each.doubt_us > 0) for each in said]


def test_doubtful_parts_are_handed_over_separately_and_end_with_the_givers_doubt():
    giver, said, handed = given([UPPER, MIDDLE], WHOLE)
    assert not list(giver)
    assert handed == [(UPPER, True), (MIDDLE, True), (LOWER, False)]
    taker, _ = doubts_of()
    taker.given_by_another(WHOLE)
    for each in said:
        taker.handed(each)
    assert zones(taker) == {UPPER, MIDDLE}
    taker.handed(Handed(0, giver.edges_of(UPPER)))
    assert zones(taker) == {MIDDLE}


def test_complete_zones_are_granted_as_complete_and_other_doubts_stay():
    assert given([], WHOLE)[2] == [(WHOLE, False)]
    giver, _, handed = given([WHOLE], LOWER)
    assert handed == [(LOWER, True)]
    assert all(not zone.intersects(LOWER) for zone in zones(giver))
