"""Combination of faults: readable cases, and the rule compared with a simple evaluator of single instants."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from experiments.faults.fault import ExperimentFault
from experiments.faults.kinds import Faults
from experiments.planned.changes import LinkChange, LinkDirectionName, LinkState
from testbed.faults.timeline import fault_plans, link_changes, process_changes
from topologies.link_parameters import LinkParameters
from topologies.model import Topology

SECOND = 1_000_000
DURATION_S = 30
LINKS = {"r0-r1": ("r0", "r1"), "r1-r2": ("r1", "r2"), "r2-r0": ("r2", "r0")}
BASE = {"delay_us": 20_000, "jitter_us": 5_000, "loss": 0.0, "rate_bits_per_s": 1_000_000}

TOPOLOGY = Topology.model_validate(
    {
        "name": "triangle",
        "regions": {"r0": {}, "r1": {}, "r2": {}},
        "links": [
            {"between": list(ends), "delay": "20ms", "jitter": "5ms", "rate": "1mbit"}
            for ends in LINKS.values()
        ],
    }
)

Given = dict[str, Any]


def read(faults: Sequence[Given]) -> Sequence[ExperimentFault]:
    return TypeAdapter(Faults).validate_python(list(faults))


def changes_of(*faults: Given) -> list[LinkChange]:
    return link_changes(read(faults), TOPOLOGY, DURATION_S * SECOND)


def test_restoring_a_link_ends_every_earlier_fault_on_it_alone():
    changes = changes_of({"at": "5s", "isolate": "r0"}, {"at": "7s", "restore": ["r1", "r0"]})
    assert [(c.at_us / SECOND, c.fault, c.link, c.state) for c in changes if c.direction == "forward"] == [
        (5, "isolate-1", "r0-r1", "blackhole"),
        (5, "isolate-1", "r2-r0", "blackhole"),
        (7, "restore-1", "r0-r1", "up"),
    ]


def test_plans_of_faults_have_the_end_of_their_effect():
    faults = read(
        [
            {"name": "cut", "at": "5s", "cut": ["r0", "r1"]},
            {"name": "lasting", "at": "6s", "isolate": "r2"},
            {"name": "mend", "at": "9s", "restore": ["r0", "r1"]},
            {"name": "early", "at": "1s", "cut": ["r0", "r1"], "for": "2s"},
        ]
    )
    plans = fault_plans(faults, TOPOLOGY, DURATION_S * SECOND)
    assert [(plan.name, plan.until_us) for plan in plans] == [
        ("early", 3 * SECOND),
        ("cut", 9 * SECOND),
        ("lasting", None),
        ("mend", None),
    ]


def test_processes_change_by_time():
    faults = read([{"at": "9s", "restart": "r0/proxy-0"}, {"at": "5s", "kill": "r0/proxy-0"}])
    assert [
        (c.at_us, c.fault, c.process, c.action) for c in process_changes(faults, DURATION_S * SECOND)
    ] == [
        (5 * SECOND, "kill-1", "r0/proxy-0", "kill"),
        (9 * SECOND, "restart-1", "r0/proxy-0", "restart"),
    ]


# The dumb evaluator: what holds at one instant, from the words of the rule alone.

seconds = st.integers(0, 12)
directions = st.sampled_from(["both", "forward", "backward"])
modes = st.sampled_from(["blackhole", "down"])
spans = st.none() | st.integers(1, 6)
ends = st.sampled_from([list(pair) for a, b in LINKS.values() for pair in ((a, b), (b, a))])
effects = st.fixed_dictionaries({"at": seconds, "for": spans, "mode": modes, "direction": directions})
cuts = st.builds(lambda base, link: {**base, "cut": link}, effects, ends)
isolations = st.builds(
    lambda base, region: {**base, "isolate": region}, effects, st.sampled_from(["r0", "r1", "r2"])
)
groups = st.sampled_from([[["r0"], ["r1"]], [["r2", "r0"], ["r1"]], [["r0"], ["r1"], ["r2"]]])
partitions = st.builds(lambda base, parts: {**base, "partition": parts}, effects, groups)
flaps = st.builds(
    lambda base, link, down, up, span: {**base, "flap": link, "down": down, "up": up, "for": span},
    effects,
    ends,
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 9),
)
sets = st.fixed_dictionaries(
    {"at": seconds, "for": spans, "direction": directions, "set": ends},
    optional={"delay": st.sampled_from(["3ms", "80ms"]), "loss": st.just("1%"), "jitter": st.just("4ms")},
).filter(lambda fault: {"delay", "loss", "jitter"} & fault.keys())
link_restores = st.fixed_dictionaries({"at": seconds, "restore": ends})
name_restores = st.fixed_dictionaries({"at": seconds, "restore": st.integers(0, 4).map(lambda n: f"f{n}")})
any_fault = st.one_of(cuts, isolations, partitions, flaps, sets, link_restores, name_restores)


def written(faults: Sequence[Given]) -> list[Given]:
    """Return the fault with units and names, as in a file."""
    result = []
    for number, fault in enumerate(faults):
        spelt = {key: f"{fault[key]}s" for key in ("at", "for", "up", "down") if fault.get(key) is not None}
        rest = {key: value for key, value in fault.items() if key not in ("at", "for", "up", "down")}
        result.append({"name": f"f{number}", **rest, **spelt})
    return result


def acts_on(fault: Given, link: str, forward: bool) -> bool:
    """Return whether the fault acts on the link in this direction: from `start` to `end`."""
    start, end = LINKS[link] if forward else reversed(LINKS[link])
    wanted = fault.get("direction")
    if wanted == "both":
        return acts_on({**fault, "direction": "forward"}, link, forward) or acts_on(
            {**fault, "direction": "backward"}, link, forward
        )
    if wanted == "backward":
        start, end = end, start
    if "isolate" in fault:
        return start == fault["isolate"]
    if "partition" in fault:
        places = {region: number for number, group in enumerate(fault["partition"]) for region in group}
        return start in places and end in places and places[start] < places[end]
    named = fault.get("cut") or fault.get("flap") or fault.get("set")
    return named == [start, end]


def ended(faults: Sequence[Given], number: int, link: str, instant: float) -> bool:
    """Return whether a restore has ended the effect of fault `number` on the link."""
    for later, restore in enumerate(faults):
        if "restore" not in restore or restore["at"] > instant:
            continue
        after = (faults[number]["at"], number) < (restore["at"], later)
        what = restore["restore"]
        concerned = what == f"f{number}" if isinstance(what, str) else set(what) == set(LINKS[link])
        if after and concerned:
            return True
    return False


def active(faults: Sequence[Given], number: int, link: str, forward: bool, instant: float) -> bool:
    fault = faults[number]
    since = instant - fault["at"]
    if since < 0 or not acts_on(fault, link, forward) or ended(faults, number, link, instant):
        return False
    if fault.get("for") is not None and since >= fault["for"]:
        return False
    return "flap" not in fault or since % (fault["down"] + fault["up"]) < fault["down"]


def at_instant(
    faults: Sequence[Given], link: str, forward: bool, instant: float
) -> tuple[str, LinkParameters]:
    running = [
        (faults[number]["at"], number)
        for number in range(len(faults))
        if "restore" not in faults[number] and active(faults, number, link, forward, instant)
    ]
    modes_now = [faults[number].get("mode") for _, number in running]
    values: dict[str, Any] = dict(BASE)
    for _, number in sorted(running):
        if "set" in faults[number]:
            for name in ("delay", "jitter"):
                if name in faults[number]:
                    values[f"{name}_us"] = int(faults[number][name].removesuffix("ms")) * 1000
            if "loss" in faults[number]:
                values["loss"] = 0.01
    values["jitter_us"] = min(values["jitter_us"], values["delay_us"])
    state = "down" if "down" in modes_now else "blackhole" if "blackhole" in modes_now else "up"
    return state, LinkParameters(**values)


@given(st.lists(any_fault, max_size=7))
@example([{"at": 1, "flap": ["r0", "r1"], "down": 1, "up": 1, "for": 9, "mode": "down", "direction": "both"}])
@pytest.mark.slow
def test_changes_agree_with_the_rule_at_every_instant(faults):
    changes = link_changes(read(written(faults)), TOPOLOGY, DURATION_S * SECOND)
    assert changes == sorted(changes, key=lambda change: change.at_us)
    assert {change.fault for change in changes} <= {f"f{number}" for number in range(len(faults))}
    for link in LINKS:
        for direction in LinkDirectionName:
            mine = [change for change in changes if (change.link, change.direction) == (link, direction)]
            states = [(LinkState.UP, LinkParameters(**BASE)), *((c.state, c.parameters) for c in mine)]
            assert all(before != after for before, after in pairwise(states)), "a change that changes nothing"
            for half_seconds in range(2 * DURATION_S):
                instant = half_seconds / 2
                now = states[sum(change.at_us <= instant * SECOND for change in mine)]
                assert now == at_instant(faults, link, direction is LinkDirectionName.FORWARD, instant)


def test_selected_packets_have_a_state_of_their_own_from_all_faults_that_act_on_them():
    some = {"name": "some", "at": "5s", "for": "6s", "set": ["r0", "r1"], "of": "r0/server-0", "loss": "3%"}
    changes = changes_of(
        some,
        {"name": "all", "at": "7s", "for": "2s", "set": ["r0", "r1"], "delay": "60ms"},
        {"name": "cut", "at": "10s", "for": "2s", "cut": ["r0", "r1"], "direction": "forward"},
    )
    forward = [change for change in changes if change.direction is LinkDirectionName.FORWARD]
    assert [
        (
            change.at_us / SECOND,
            change.place,
            change.state,
            change.parameters.delay_us,
            change.parameters.loss,
        )
        for change in forward
    ] == [
        (5, "r0-r1 of r0/server-0", "up", 20_000, 0.03),
        (7, "r0-r1", "up", 60_000, 0),
        (7, "r0-r1 of r0/server-0", "up", 60_000, 0.03),
        (9, "r0-r1", "up", 20_000, 0),
        (9, "r0-r1 of r0/server-0", "up", 20_000, 0.03),
        (10, "r0-r1", "blackhole", 20_000, 0),
        (10, "r0-r1 of r0/server-0", "blackhole", 20_000, 0.03),
        (11, "r0-r1 of r0/server-0", "blackhole", 20_000, 0),
        (12, "r0-r1", "up", 20_000, 0),
        (12, "r0-r1 of r0/server-0", "up", 20_000, 0),
    ]
