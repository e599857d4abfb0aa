"""Golden scenarios of Scribe: nodes do exactly what the scripts say, as the papers' figures show."""

import itertools
from pathlib import Path

from tests.golden import overlay_scenario
from tests.golden.script import results_of

GOLDEN = Path(overlay_scenario.__file__).parent / "scribe"


def followed(name, *words):
    return results_of(GOLDEN / f"{name}.txt", *words)


def test_the_route_is_that_of_slide_52():
    way = ["65a1fc", "d13da3", "d4213f", "d462ba", "d467c4"]
    hops = [f"{a} -> {b}  ROUTE HELLO d46a1c" for a, b in itertools.pairwise(way)]
    assert followed("slide-52", "HELLO") == [*hops, "d467c4: deliver HELLO"]


def test_joins_are_those_of_figure_2():
    joins = [line.split("  ")[0] for line in followed("figure-2", "JOIN")]
    assert joins[:3] == ["0111 -> 1001", "1001 -> 1101", "1101 -> 1100"]
    assert joins[3:4] == ["0100 -> 1001"]  # and no further
    assert joins[4:] == ["1001 -> 1111", "1111 -> 1100"]  # 3.5: when 1101 has failed
    for member in ("0111", "0100"):
        assert followed("figure-2", f"{member} has") == [f"{member} has [{seq}]" for seq in (1, 2, 3)]


def test_the_tree_of_figure_2_shrinks_by_one_node():
    assert followed("figure-2-shrink", "SHRINK")[0] == "1001 -> 1101  SHRINK 1100 0111, 0100"
    last = followed("figure-2-shrink", "MULTICAST")
    assert {line.split("  ")[0] for line in last} >= {"1101 -> 0111", "1101 -> 0100"}
    assert not any("1001" in line for line in last)


def test_the_tree_of_figure_2_grows_only_if_the_root_is_overloaded():
    said = followed("figure-2-grow", "ADOPTED", "GROW", "REJOIN")
    assert said[0] == "1100 -> 0111  ADOPTED 1100"
    grow = said.index("1100 -> 1101  GROW 1100")
    assert said.index("1100 -> 1101  ADOPTED 1100") > grow
    assert said.index("1100 -> 0111  REJOIN 1100") > grow
    assert {"1101 -> 0100  ADOPTED 1100", "1101 -> 0111  ADOPTED 1100"} <= set(said)
    assert not any(line.startswith("1001 ->") for line in said)
