"""Faults that are injected during a run: named, validated, combined, and finally in the plan."""

from pathlib import Path
from typing import Any

import pytest

from experiments.loader import load_experiment, read_experiment
from experiments.planned.changes import LinkChange
from experiments.planned.plan import plan_from_json, plan_to_json
from testbed.faults.interactive import InteractiveSchedule, RefusedFaultError, ignored_fields, open_ended
from testbed.planning import make_plan
from tests.testbed.runner.live import write_experiment
from topologies.loader import load_topology

SECOND = 1_000_000
CUT: dict[str, Any] = {"cut": ["r0", "r1"]}
RESTORE: dict[str, Any] = {"restore": ["r0", "r1"]}


@pytest.fixture
def known(tmp_path: Path) -> InteractiveSchedule:
    experiment = load_experiment(str(write_experiment(tmp_path)))
    return InteractiveSchedule(open_ended(experiment, ()), load_topology(experiment.topology))


def told(known: InteractiveSchedule) -> list[tuple[float, str, str]]:
    return [
        (change.at_us / SECOND, change.fault, change.state)
        for change in known.changes
        if isinstance(change, LinkChange) and change.direction == "forward"
    ]


def test_interactive_faults_are_named_by_kind_and_combine(known: InteractiveSchedule):
    later = known.with_fault(CUT, 3 * SECOND).with_fault(RESTORE, 5 * SECOND).with_fault(CUT, 6 * SECOND)
    assert told(later) == [(3, "cut-1", "blackhole"), (5, "restore-1", "up"), (6, "cut-2", "blackhole")]


def test_later_faults_do_not_alter_past_changes(known: InteractiveSchedule):
    before = known.with_fault({**CUT, "for": "4s"}, 3 * SECOND)
    after = before.with_fault(RESTORE, 5 * SECOND)
    assert told(before) == [(3, "cut-1", "blackhole"), (7, "cut-1", "up")]
    assert told(after) == [(3, "cut-1", "blackhole"), (5, "restore-1", "up")]


def test_a_name_from_the_file_is_not_reused(tmp_path: Path):
    faults = "faults: [{name: cut-1, at: 500ms, cut: [r0, r1], for: 100ms}]\n"
    experiment = load_experiment(str(write_experiment(tmp_path, faults=faults)))
    known = InteractiveSchedule(open_ended(experiment, experiment.faults), load_topology(experiment.topology))
    assert known.with_fault(CUT, 30 * SECOND).latest.name == "cut-2"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"cut": ["r0", "r9"]}, "no region r9"),
        ({"set": ["r0", "r1"], "delay": "soon"}, "delay: 'soon' is not a duration"),
        ({"kill": "r0/proxy-7"}, "there is no process r0/proxy-7"),
        ({"restart": "r0/proxy-0"}, "no kill or leave of r0/proxy-0 comes before it"),
        ({"restore": "cut-1"}, "no fault that a restore ends, and no link, is named cut-1"),
        (RESTORE, "restore r0-r1 would change nothing"),
        ({"set": ["r0", "r1"], "delay": "5ms"}, "would change nothing"),
    ],
)
def test_impossible_faults_are_refused_in_one_line(
    known: InteractiveSchedule, given: dict[str, Any], why: str
):
    with pytest.raises(RefusedFaultError, match=why) as raised:
        known.with_fault(given, SECOND)
    assert "\n" not in str(raised.value)


def test_the_final_plan_contains_all_injected_faults(known: InteractiveSchedule, tmp_path: Path):
    plan = make_plan(known.experiment, known.topology, seed=None, links_kind="auto")
    asked = known.with_fault(CUT, 3 * SECOND).with_fault(RESTORE, 5 * SECOND)
    ended = asked.plan(plan, 9 * SECOND)
    assert ended == make_plan(asked.until(9 * SECOND), known.topology, seed=None, links_kind="auto")
    assert [(fault.name, fault.at_us, fault.until_us) for fault in ended.faults] == [
        ("cut-1", 3 * SECOND, 5 * SECOND),
        ("restore-1", 5 * SECOND, None),
    ]
    assert plan_from_json(plan_to_json(ended)) == ended


def test_an_interactive_experiment_has_no_expectations_or_planned_faults():
    read = read_experiment("link-failure", ["on=simulator"], ignored_fields(with_faults=False)).experiment
    tried = open_ended(read, ())
    assert (tried.faults, tried.expect, tried.on) == ((), (), "local")
