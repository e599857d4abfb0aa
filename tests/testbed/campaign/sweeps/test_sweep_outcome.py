"""The final text of a sweep: how to continue it, and how to repeat one of its runs."""

from dataclasses import replace
from pathlib import Path

from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweep_expectations import GroupJudgement, SweepJudgement
from experiments.campaigns.sweepdir import SweepDirectory, runs
from testbed.campaign.sweeps.sweep_outcome import show_sweep, verdict_of
from tests.campaigns import sweep_record

CRASHED = replace(runs({}, 1, 7)[0], state=RunState.FAILED)
RECORD = sweep_record(CRASHED, backend="my lab.yaml", links="relay")


def test_commands_can_be_pasted_with_any_paths(capsys):
    given = ("my tiny.yaml", ["workload.rate=10/s", "name=a b"])
    show_sweep(SweepDirectory(Path("my runs/tiny")), RECORD, given)
    said = capsys.readouterr().out
    settings = "--set workload.rate=10/s --set 'name=a b'"
    assert (f"replay: cutset run 'my tiny.yaml' {settings} --seed 7 --repeat 1 --on 'my lab.yaml'\n") in said
    assert (
        f"resume       cutset run 'my tiny.yaml' {settings} --seed 7 --repeat 1 --on 'my lab.yaml'"
        " --links relay --resume 'my runs/tiny'\n"
    ) in said


def test_failed_sweep_expectations_are_reported_with_their_groups(capsys):
    passed = replace(CRASHED, state=RunState.DONE, verdict="passed")
    missed = GroupJudgement(9.5, False, "topology=ring-6")
    held = GroupJudgement(1.0, True, "topology=star-5")
    text = "max(latency.p99_ms) by topology <= 2"
    expectation = SweepJudgement(text, 9.5, False, (held, missed))
    record = replace(RECORD, runs=(passed,), expectations=(expectation,))
    assert verdict_of(record) == "failed"
    assert verdict_of(replace(record, expectations=())) == "passed"
    show_sweep(SweepDirectory(Path("runs/tiny")), record, ("tiny", []))
    said = capsys.readouterr().out
    assert f"{text}: NOT HELD (9.5)\n" in said
    assert "topology=ring-6: NOT HELD (9.5)\n" in said
    assert "star-5" not in said
