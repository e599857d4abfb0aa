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


def doubts_of() -> tuple[DoubtfulZones, list[Handed]]:
    """Those of one peer, and what it says."""
    said: list[Handed] = []
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


def zones(doubts: DoubtfulZones) -> set[Zone]:
    return {each.zone for each in doubts}


def test_parts_that_are_in_doubt_are_given_on_apart_and_the_rest_is_known():
    giver, said = doubts_of()
    giver.taken_over(UPPER)
    giver.taken_over(MIDDLE)
    giver.give(WHOLE, TAKER)
    assert not list(giver)
    assert [(giver.zone_of(each.edges), each.doubt_us > 0) for each in said] == [
        (UPPER, True),
        (MIDDLE, True),
        (LOWER, False),
    ]
    taker, _ = doubts_of()
    taker.given_by_another(WHOLE)
    for each in said:
        taker.handed(each)
    assert zones(taker) == {UPPER, MIDDLE}


def test_zones_without_doubts_are_given_as_known_at_once():
    giver, said = doubts_of()
    giver.give(WHOLE, TAKER)
    (handed,) = said
    assert (giver.zone_of(handed.edges), handed.doubt_us) == (WHOLE, 0)


def test_a_doubt_that_reaches_beyond_what_is_given_stays_there():
    giver, said = doubts_of()
    giver.taken_over(WHOLE)
    giver.give(LOWER, TAKER)
    assert [(giver.zone_of(each.edges), each.doubt_us > 0) for each in said] == [(LOWER, True)]
    assert all(not zone.intersects(LOWER) for zone in zones(giver))


def test_when_its_giver_knows_all_of_a_part_that_one_ends():
    giver, said = doubts_of()
    giver.taken_over(UPPER)
    giver.taken_over(MIDDLE)
    first, _ = giver
    giver.give(WHOLE, TAKER)
    taker, _ = doubts_of()
    taker.given_by_another(WHOLE)
    for each in said:
        taker.handed(each)
    taker.handed(Handed(0, giver.edges_of(first.zone)))
    assert zones(taker) == {MIDDLE}
