"""A case always shrinks to the same necessary disturbances, whatever else it has."""

from dataclasses import replace

import pytest

from experiments.hunting.case import HuntCase, HuntDisturbance, by_time
from experiments.hunting.case_experiment import hunt_base
from experiments.hunting.shrinking import CaseShrinking
from experiments.loader import load_experiment

pytestmark = pytest.mark.slow

EXPERIMENT = load_experiment("nemesis")
BASE, NEMESIS = hunt_base(EXPERIMENT), EXPERIMENT.nemesis
CUT = HuntDisturbance("cut", 6_000_000, 2_000_000, ("r0", "r1"), (), "forward")
KILL = HuntDisturbance("crash", 7_000_000, 900_000, ("r0/client-0", "r0/client-1"))
NOISE = [
    HuntDisturbance("delay", 2_000_000 + 700_000 * number, 400_000, ("r1", "r2"), amount=50_000)
    for number in range(9)
]
CASE = HuntCase(
    7, {"parameters.fanout": 4, "roles.proxy": 5, "workload.rate": "100/s"}, by_time([CUT, KILL, *NOISE])
)


def needs_both(case: HuntCase) -> bool:
    """Return whether a client of r0 is killed during a cut of that link of half a second or more."""
    cuts = [each for each in case.disturbances if each.kind == "cut" and each.for_us >= 500_000]
    kills = [each for each in case.disturbances if each.kind == "crash" and "r0/client-1" in each.target]
    return any(cut.at_us <= kill.at_us < cut.end_us + 1_500_000 for cut in cuts for kill in kills)


def shrunk(case: HuntCase, breaks, **given) -> tuple[HuntCase, CaseShrinking]:
    def first_failing(cases):
        return next((place for place, each in enumerate(cases) if breaks(each)), None)

    shrinking = CaseShrinking(BASE, NEMESIS, first_failing, **given)
    return shrinking.shrink(case), shrinking


def test_a_case_shrinks_to_the_necessary_disturbances_with_any_parallelism():
    case, shrinking = shrunk(CASE, needs_both, together=7)
    assert [each.kind for each in case.disturbances] == ["cut", "crash"]
    cut, kill = case.disturbances
    assert kill.target == ("r0/client-1",)
    assert cut.for_us == 500_000
    assert "parameters.fanout" not in case.settings
    assert case.settings["workload.rate"] == "5/s"
    assert case.settings["roles.proxy"] == 1
    assert shrinking.runs <= shrinking.runs_max
    assert case == shrunk(CASE, needs_both, together=1)[0]


def test_a_drawn_network_shrinks_to_the_smallest_that_still_breaks():
    ring = {
        "kind": "ring",
        "regions": 6,
        "delays": {"from": "4ms", "to": "20ms", "asymmetric": True},
        "link": {"loss": "1%", "rate": "10mbit"},
    }

    def needs_a_lossy_ring(case: HuntCase) -> bool:
        topology = case.settings.get("topology")
        if not isinstance(topology, dict) or topology["kind"] != "ring":
            return False
        return "loss" in topology.get("link", {}) and topology["regions"] >= 4

    case, _ = shrunk(replace(CASE, settings={"topology": ring}, disturbances=(CUT,)), needs_a_lossy_ring)
    plain = {"kind": "ring", "regions": 4, "delays": {"from": "4ms", "to": "4ms"}, "link": {"loss": "1%"}}
    assert case.settings["topology"] == plain
    assert case.disturbances == ()


def test_a_case_that_breaks_without_disturbances_shrinks_to_none():
    case, _ = shrunk(CASE, lambda case: case.settings.get("parameters.fanout") == 4)
    assert case.disturbances == ()
    assert case.settings["parameters.fanout"] == 4


def test_other_seeds_are_tried_for_smaller_cases():
    def breaks(case: HuntCase) -> bool:
        enough = needs_both(case) and (len(case.disturbances) >= 5 or case.seed % 5 == 1)
        return enough or len(case.disturbances) == len(CASE.disturbances)

    case, shrinking = shrunk(CASE, breaks)
    assert [each.kind for each in case.disturbances if each.kind != "delay"] == ["cut", "crash"]
    assert len(case.disturbances) <= 3
    assert case.seed != CASE.seed
    assert shrinking.runs <= shrinking.runs_max == 300


def test_shrinking_stops_at_its_limit_of_runs():
    case, shrinking = shrunk(CASE, needs_both, runs_max=3)
    assert shrinking.runs <= 3
    assert needs_both(case)


def test_a_shorter_run_keeps_the_quiet_time_at_its_end():
    case, _ = shrunk(replace(CASE, disturbances=(CUT,)), lambda case: bool(case.disturbances))
    ends_s = max(each.end_us for each in case.disturbances) / 1e6
    assert (
        float(case.settings["duration"].removesuffix("ms").removesuffix("s"))
        / (1000 if case.settings["duration"].endswith("ms") else 1)
        >= ends_s + NEMESIS.quiet_us / 1e6
    )
