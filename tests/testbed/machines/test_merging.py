"""One run.json from several, on hand-written ones."""

from typing import Any

import pytest

from testbed.machines.merging import LISTS, merged

S = 1_000_000_000
BASE: dict[str, Any] = {
    **{key: [] for key in (*LISTS, "problems")},
    "times": {"started_ns": 1},
    "machines": [{"name": "h0", "zero_ns": 100 * S}, {"name": "h1", "zero_ns": 900 * S}],
}


def part(zero_s: int, **more: Any) -> dict[str, Any]:
    """What a machine wrote whose time 0 was then."""
    return {
        **{key: [] for key in (*LISTS, "problems")},
        "times": {"zero_ns": zero_s * S, "drained_ns": (zero_s + 60) * S},
        "links": "relay",
        "tcp": {"congestion_control": "reno"},
        "phase": "collected",
        "outcome": "completed",
        **more,
    }


def change(at_s: int) -> dict[str, Any]:
    return {"fault": f"at {at_s}", "requested_ns": at_s * S, "applied_ns": at_s * S}


def test_lists_say_which_machine_each_entry_is_from() -> None:
    content = merged(
        BASE, {"h0": part(100, cpu=[{"busy": 0.1}]), "h1": part(900, cpu=[{"busy": 0.2}])}, ["h0", "h1"]
    )
    assert content["cpu"] == [{"busy": 0.1, "machine": "h0"}, {"busy": 0.2, "machine": "h1"}]


def test_changes_stand_in_the_order_in_which_they_happened_whatever_the_clocks_say() -> None:
    first, second = part(100, changes=[change(119), change(141)]), part(900, changes=[change(920)])
    content = merged(BASE, {"h0": first, "h1": second}, ["h0", "h1"])
    assert [each["fault"] for each in content["changes"]] == ["at 119", "at 920", "at 141"]


def test_the_run_s_times_are_the_first_machine_s() -> None:
    content = merged(BASE, {"h1": part(900), "h0": part(100)}, ["h0", "h1"])
    assert content["times"] == {"started_ns": 1, "zero_ns": 100 * S, "drained_ns": 160 * S}


def test_a_run_is_drained_when_it_is_drained_everywhere() -> None:
    late = part(900)
    del late["times"]["drained_ns"]
    assert "drained_ns" not in merged(BASE, {"h0": part(100), "h1": late}, ["h0", "h1"])["times"]


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("completed", "completed", "completed"),
        ("completed", "interrupted", "interrupted"),
        ("interrupted", "crashed", "crashed"),
        (None, "completed", "crashed"),
    ],
)
def test_a_run_is_as_complete_as_its_least_complete_part(
    first: str | None, second: str, outcome: str
) -> None:
    parts = {"h0": part(100, outcome=first), "h1": part(900, outcome=second)}
    assert merged(BASE, parts, ["h0", "h1"])["outcome"] == outcome


def test_without_the_word_of_a_machine_a_run_is_crashed() -> None:
    assert merged(BASE, {"h0": part(100)}, ["h0", "h1"])["outcome"] == "crashed"
    assert merged(BASE, {}, ["h0", "h1"])["outcome"] == "crashed"


def test_problems_name_their_machine_and_are_said_once() -> None:
    base = {**BASE, "problems": ["h1: the disk is full"]}
    parts = {"h0": part(100, problems=["too late"]), "h1": part(900, problems=["the disk is full"])}
    assert merged(base, parts, ["h0", "h1"])["problems"] == ["h1: the disk is full", "h0: too late"]
