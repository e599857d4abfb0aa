"""What a delivery rested on, and the fewest faults that hit every way of it."""

from random import Random

import pytest

from experiments.hunting.lineage import FAULTS_MAX, Delivery, Transfer, Ways, deliveries, starving

HOPS = {("r0", "r1"): [("r0", "r1")], ("r0", "r2"): [("r0", "r2")], ("r2", "r1"): [("r2", "r1")]}
CLIENT = "r1/client-0"


def transfer(at_us: int, source: str, target: str, first: int = 0, end: int = 10) -> Transfer:
    return Transfer(at_us, source, target, 1, first, end)


DIRECT = [
    transfer(10_000, "r0/proxy-0", "r1/proxy-0"),
    transfer(30_000, "r1/proxy-0", CLIENT),
]
AROUND = [
    transfer(11_000, "r0/proxy-0", "r2/proxy-0"),
    transfer(40_000, "r2/proxy-0", "r1/proxy-0"),
]


DELIVERY = Delivery(CLIENT, 1, 9)


def fewest(transfers):
    return set(Ways.of(DELIVERY, sorted(transfers, key=lambda each: each.at_us), HOPS).fewest(Random(1)))


def test_one_way_is_hit_by_whatever_it_goes_through():
    assert fewest(DIRECT) == {
        frozenset([("link", "r0", "r1")]),
        frozenset([("process", "r1/proxy-0", "")]),
        frozenset([("pair", "r1/proxy-0", CLIENT)]),
    }


def test_of_two_ways_both_are_hit_where_they_part_and_once_where_they_meet():
    later = transfer(60_000, "r1/proxy-0", CLIENT)
    found = fewest([*DIRECT, *AROUND, later])
    assert frozenset([("process", "r1/proxy-0", "")]) in found
    assert frozenset([("link", "r0", "r1"), ("link", "r2", "r1")]) in found
    assert frozenset([("link", "r0", "r1")]) not in found
    assert all(not one < other for one in found for other in found)


def test_what_cannot_have_been_passed_on_is_no_way():
    early = transfer(12_000, "r2/proxy-0", CLIENT)  # before it had the event
    other = transfer(20_000, "r1/proxy-0", CLIENT, 10, 20)  # another event
    aside = transfer(35_000, "r1/proxy-0", "r1/client-1")  # another client
    assert Ways.of(
        DELIVERY, sorted([early, *DIRECT, other, aside], key=lambda each: each.at_us), HOPS
    ).messages == tuple(DIRECT)


def test_the_client_and_the_origin_are_not_themselves_taken_away():
    everything = {weak for chosen in fewest([*DIRECT, *AROUND]) for weak in chosen}
    assert {weak for weak in everything if weak[0] == "process"} == {("process", "r1/proxy-0", "")}


def test_more_ways_than_faults_are_given_up():
    many = [
        each
        for number in range(FAULTS_MAX + 1)
        for each in (
            transfer(10_000, "r0/proxy-0", f"r1/proxy-{number}"),
            transfer(30_000, f"r1/proxy-{number}", CLIENT),
        )
    ]
    assert fewest(many) == {frozenset([("link", "r0", "r1")])}


def test_disturbances_begin_before_the_first_message_and_last_beyond_the_last():
    again = transfer(500_000, "r0/proxy-0", "r1/proxy-0")
    ways = Ways.of(DELIVERY, [*DIRECT, again, transfer(600_000, "r1/proxy-0", CLIENT)], HOPS)
    [cut] = ways.disturbances(frozenset([("link", "r0", "r1")]), Random(1), 200_000)
    assert (cut.kind, cut.target, cut.direction) == ("cut", ("r0", "r1"), "forward")
    assert cut.at_us <= 10_000 < 500_000 + 190_000 < cut.end_us
    [apart] = ways.disturbances(frozenset([("pair", "r1/proxy-0", CLIENT)]), Random(1), 200_000)
    assert (apart.kind, apart.target, apart.others) == ("separate", ("r1/proxy-0",), (CLIENT,))


@pytest.mark.parametrize("transfers", [[], AROUND[:1]])
def test_where_nothing_came_nothing_can_be_kept_from_coming(transfers):
    assert deliveries(transfers, [CLIENT]) == []
    assert starving(transfers, [CLIENT], HOPS, Random(1), [1]) == []


def test_the_same_generator_gives_the_same():
    given = [*DIRECT, *AROUND, transfer(60_000, "r1/proxy-0", CLIENT)]
    one, other = (starving(given, [CLIENT], HOPS, Random(7), [100_000, 300_000]) for _ in range(2))
    assert one == other
    assert one
