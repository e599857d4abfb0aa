"""Golden scenarios of CAN: nodes do exactly what the scripts say."""

from pathlib import Path

from tests.golden import space_scenario
from tests.golden.script import results_of

GOLDEN = Path(space_scenario.__file__).parent / "can"


def followed(name, *words):
    return results_of(GOLDEN / f"{name}.txt", *words)


def test_each_hop_is_nearer_to_the_point():
    hops = ["c -> d  ROUTE HELLO", "d -> e  ROUTE HELLO", "e: deliver HELLO"]
    assert followed("join-and-route", "HELLO")[-3:] == hops


def test_only_the_successor_takes_over():
    assert followed("takeover", ": takeover") == ["c: takeover d"]
    assert "b -> c  REPORT d failed" in followed("takeover", "REPORT")


def test_after_a_partition_each_node_has_its_former_zones():
    zones = followed("partition", "beside")
    assert any("v1" in line for line in zones[:4])
    assert sorted(zones[4:]) == sorted(followed("two-splits-at-once", "beside"))


def test_nodes_that_get_zones_at_once_learn_of_each_other():
    told = followed("two-splits-at-once", "CLAIM")
    assert "a -> c  CLAIM d 0.5..1.0, 0.5..1.0" in told
    assert "b -> d  CLAIM c 0.0..0.5, 0.5..1.0" in told
