"""The time and place from which the figures of faults count if several act on a link or a process."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter

from experiments.faults.fault import ExperimentFault
from experiments.faults.kinds import Faults
from experiments.planned.strikes import strike_problems, strikes
from topologies.model import Topology

SECOND = 1_000_000
TOPOLOGY = Topology.model_validate(
    {
        "name": "triangle",
        "regions": {"a": {}, "b": {}, "c": {}},
        "links": [
            {"between": list(ends), "delay": "20ms", "rate": "1mbit"}
            for ends in (("a", "b"), ("b", "c"), ("a", "c"))
        ],
    }
)
FORTH, BACK = ("a-b", "forward"), ("a-b", "backward")
Given = dict[str, Any]


def read(*faults: Given) -> Sequence[ExperimentFault]:
    return TypeAdapter(Faults).validate_python(list(faults))


def struck(*faults: Given) -> dict[str, tuple[float, list[tuple[str, str]], list[str]]]:
    """Return the time, the link directions and the processes of each strike, by the fault's name."""
    found = strikes(read(*faults), TOPOLOGY)
    return {
        name: (each.at_us / SECOND, [(link, str(way)) for link, way in each.directions], list(each.processes))
        for name, each in found.items()
    }


def refused(*faults: Given) -> list[tuple[int, str]]:
    return list(strike_problems(read(*faults), TOPOLOGY, 20 * SECOND, {"one", "two", "three"}))


def one(**more: Any) -> Given:
    return {"name": "one", "at": "3s", "for": "2s", **more}


def two(**more: Any) -> Given:
    return {"name": "two", "at": "3s", "for": "1s", **more}


def test_cuts_of_one_instant_strike_together_at_their_own_links():
    faults = one(cut=["a", "b"]), two(cut=["a", "b"], direction="forward")
    assert struck(*faults) == {"one": (3, [BACK, FORTH], []), "two": (3, [FORTH], [])}
    assert refused(*faults) == []


@pytest.mark.parametrize("at", ["4s", "5s"])
def test_an_outage_strikes_at_its_start_even_during_another_outage(at: str):
    assert struck(one(cut=["a", "b"]), two(at=at, cut=["a", "b"]))["two"] == (float(at[0]), [BACK, FORTH], [])


def test_a_set_strikes_at_the_end_of_the_outage_that_hides_it():
    faults = one(set=["a", "b"], delay="50ms"), two(cut=["a", "b"])
    assert struck(*faults)["one"] == (4, [BACK, FORTH], [])


def test_a_set_strikes_first_where_nothing_hides_it():
    faults = one(set=["a", "b"], delay="50ms"), two(cut=["a", "b"], direction="forward")
    assert struck(*faults)["one"] == (3, [BACK], [])


def test_a_set_strikes_at_the_end_of_a_later_set_of_the_same_parameter():
    faults = one(set=["a", "b"], delay="50ms"), two(set=["a", "b"], delay="70ms")
    assert struck(*faults) == {"one": (4, [BACK, FORTH], []), "two": (3, [BACK, FORTH], [])}


def test_a_restore_strikes_when_the_link_differs_from_a_run_without_it():
    cut = {"name": "cut", "at": "1s", "cut": ["a", "b"]}
    faults = cut, one(isolate="a"), {"name": "mend", "at": "4s", "restore": "cut"}
    assert struck(*faults)["mend"] == (5, [BACK, FORTH], [])


def test_the_last_of_two_restores_strikes_when_the_link_is_up():
    faults = (
        {"name": "one", "at": "1s", "cut": ["a", "b"]},
        {"name": "two", "at": "2s", "cut": ["a", "b"]},
        {"name": "first", "at": "4s", "restore": "one"},
        {"name": "second", "at": "6s", "restore": "two"},
    )
    assert {struck(*faults)[name][0] for name in ("first", "second")} == {6}


def test_faults_of_processes_strike_when_they_begin():
    apart = two(**{"separate": "a/proxy-0", "from": ["a/client-0"]})
    longer = {**apart, "name": "longer", "at": "3500ms"}
    mend = {"name": "mend", "at": "3800ms", "restore": "two"}
    found = struck(apart, longer, mend, {"name": "kill", "at": "3s", "kill": "a/proxy-1"})
    both = ["a/proxy-0", "a/client-0"]
    assert found["two"] == (3, [], both)
    assert found["longer"] == (3.5, [], both)
    assert found["mend"] == (4.5, [], both)  # the other one keeps them apart until then
    assert found["kill"] == (3, [], ["a/proxy-1"])


def test_a_strike_after_the_run_has_no_place():
    faults = read(one(set=["a", "b"], delay="50ms"), two(cut=["a", "b"]))
    late = strikes(faults, TOPOLOGY, 4 * SECOND)["one"]
    assert (late.directions, late.processes) == ((), ())


def test_strikes_of_a_flap_with_thousands_of_outages_are_computed_quickly():
    flap = {"at": "0s", "flap": ["a", "b"], "down": "10ms", "up": "10ms", "for": "200s"}
    assert struck(flap, one(set=["a", "b"], loss="5%"))["one"] == (3.01, [BACK, FORTH], [])


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (
            (one(cut=["a", "b"]), two(cut=["b", "a"])),
            "one and two both act on a-b from 3s on, and no figure tells them apart: let one begin at another"
            " time or act elsewhere, or leave it out",
        ),
        (
            (one(set=["a", "b"], delay="50ms"), two(set=["a", "b"], loss="5%", direction="forward")),
            "one and two both act on a-b forward from 3s on, and no figure tells them apart: write their"
            " values as one set, let one begin at another time or act elsewhere, or leave it out",
        ),
        (
            (one(cut=["a", "b"]), two(set=["a", "b"], delay="50ms")),
            "two: set a-b would change nothing while one lasts: let it begin at another time or last longer,"
            " or leave it out",
        ),
        (
            (one(cut=["a", "b"]), {"name": "two", "at": "5s", "restore": ["a", "b"]}),
            "two: restore a-b would change nothing (nothing is left to end then): let it happen at another"
            " time, or leave it out",
        ),
        (
            (
                {"name": "one", "at": "3s", "kill": "a/proxy-0"},
                {"name": "two", "at": "3s", "reset": "a/proxy-0"},
            ),
            "one and two both act on a/proxy-0 from 3s on, and no figure tells them apart: let one begin at"
            " another time or act elsewhere, or leave it out",
        ),
    ],
)
def test_indistinguishable_faults_are_refused(faults: tuple[Given, ...], said: str):
    assert refused(*faults) == [(1, said)]


def test_the_reason_for_a_common_strike_of_faults_is_reported():
    faults = (
        {"name": "one", "at": "3s", "cut": ["a", "b"]},
        {"name": "other", "at": "4s", "cut": ["a", "b"]},
        {"name": "two", "at": "5s", "restore": "one"},
        {"name": "three", "at": "7s", "restore": "other"},
    )
    [(number, said)] = refused(*faults)
    assert number == 3
    assert said.startswith("two and three both act on a-b from 7s on (two changes nothing before), and no")


def test_faults_without_expectations_may_have_the_same_strike():
    faults = read(
        one(cut=["a", "b"]), two(cut=["b", "a"]), {"name": "three", "at": "9s", "restore": ["a", "b"]}
    )
    assert list(strike_problems(faults, TOPOLOGY, 20 * SECOND, ())) == []
    assert [number for number, _ in strike_problems(faults, TOPOLOGY, 20 * SECOND, {"one"})] == [1]


def test_a_fault_and_the_restore_of_another_may_have_the_same_strike():
    faults = (
        {"name": "one", "at": "1s", "kill": "a/proxy-0"},
        {"name": "two", "at": "3s", "restart": "a/proxy-0"},
        {"name": "three", "at": "3s", "reset": "a/proxy-0"},
    )
    assert refused(*faults) == []
