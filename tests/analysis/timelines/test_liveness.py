"""Presence of processes at the end of a run, and the number of their starts, from the applied changes."""

import pytest

from analysis.timelines.liveness import read_presence
from experiments.records.run_record import record_from_json
from tests.analysis.timelines.world import run_json, run_record

CLIENT = "r1-client-0"


def liveness(*failover_events):
    faults = [f"{{name: f{at}, at: {at + 1}s, {act}: r1/client-0}}" for at, act in enumerate(failover_events)]
    return read_presence(run_record(f"faults=[{', '.join(faults)}]", "expect=[]"))


@pytest.mark.parametrize(
    ("failover_events", "gone", "starts"),
    [
        (("kill",), True, {}),
        (("leave",), True, {}),
        (("stop",), True, {}),
        (("stop", "continue"), False, {}),
        (("join",), False, {CLIENT: 1}),
        (("kill", "restart"), False, {CLIENT: 2}),
        (("join", "kill", "restart", "leave"), True, {CLIENT: 2}),
        (("kill", "restart", "kill", "restart"), False, {CLIENT: 3}),
    ],
)
def test_the_last_action_decides_presence(failover_events, gone, starts):
    found = liveness(*failover_events)
    assert found.disturbed == {CLIENT}
    assert (CLIENT in found.gone) is gone
    assert found.starts == starts


def test_an_undisturbed_process_was_present_all_the_time():
    found = read_presence(run_record())
    assert (found.disturbed, found.gone, found.starts) == (frozenset(), frozenset(), {})


def test_an_unexpectedly_ended_process_is_absent():
    run = run_json()
    (process,) = [process for process in run["processes"] if process["name"] == "r1/client-0"]
    process["exit"] = {"code": None, "signal": 11, "time_ns": 0, "expected": False}
    assert read_presence(record_from_json(run)).gone == {CLIENT}


def test_changes_that_could_not_be_applied_did_not_happen():
    run = run_json("faults=[{name: dead, at: 1s, kill: r1/client-0}]", "expect=[]")
    run["changes"][0]["applied_ns"] = None
    assert read_presence(record_from_json(run)).gone == frozenset()
