"""Comparing runs: differing settings, results and timelines."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from analysis.pages.comparing.metrics import compared, standing_out
from analysis.pages.comparing.page import other_faults, overall
from analysis.pages.comparing.settings import settings
from analysis.pages.comparing.sides import RUNS_MAX, ComparedRun, read_sides
from analysis.pages.comparing.text import lines
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

RunOf = Callable[[str], RunDirectory]


@pytest.fixture
def sides(run_of: RunOf) -> tuple[ComparedRun, ...]:
    """Return a run, and one that recovered later."""
    return read_sides([run_of("passed"), run_of("later")])


def test_only_settings_that_differ_are_reported(sides: tuple[ComparedRun, ...]) -> None:
    found = settings(sides)
    assert [(each.path, each.values) for each in found.asked] == [
        ("experiment.workload.rate", ("20000/s", "10000/s"))
    ]
    assert {each.path for each in found.ran} == {"seed", "commit"}
    assert found.same > 10


def test_a_run_compared_with_itself_has_no_differences(run_of: RunOf) -> None:
    found = read_sides([run_of("passed"), run_of("passed")])
    assert settings(found).asked == settings(found).ran == ()
    assert standing_out(compared(found)) == ()


def test_a_later_recovery_is_worse_and_by_how_much(sides: tuple[ComparedRun, ...]) -> None:
    row = next(row for row in compared(sides) if row.metric == "recovery.cut.switch_s")
    first, second = row.values
    assert (first.status, first.change) == ("", "")
    assert second.status == "bad"
    assert second.value is not None
    assert first.value is not None
    assert second.value - first.value == pytest.approx(1.0)
    assert second.change == f"+{(second.value / first.value - 1) * 100:.0f}\u00a0%"


def test_a_figure_missing_in_one_run_is_no_difference(run_of: RunOf) -> None:
    rows = compared(read_sides([run_of("passed"), run_of("crashed")]))
    assert rows
    assert all(row.values[1].value is None and not row.values[1].status for row in rows)


def test_timelines_are_superimposed_with_the_first_runs_faults(sides: tuple[ComparedRun, ...]) -> None:
    throughput, latency = overall(sides)
    assert [one.label for one in throughput.series] == ["A", "B"]
    assert [one.label for one in latency.series] == ["A", "B"]
    assert [span.label for span in throughput.spans] == ["cut r2\u2013r3"]


def test_faults_at_other_times_are_named(run_of: RunOf) -> None:
    assert other_faults(read_sides([run_of("passed"), run_of("later")])) == ()
    (other,) = other_faults(read_sides([run_of("passed"), run_of("undisturbed")]))
    assert other.letter == "B"


def test_the_text_names_invalid_runs(run_of: RunOf) -> None:
    told = "\n".join(lines(read_sides([run_of("passed"), run_of("invalid")])))
    assert "B is invalid: r2-r3@r2.pcap: the kernel dropped 17 packets" in told
    assert "A cannot" not in told


@pytest.mark.parametrize("names", [("passed", "doubtful"), ("doubtful", "passed")])
def test_figures_of_an_invalid_run_are_not_judged(run_of: RunOf, names: tuple[str, str]) -> None:
    found = read_sides([run_of(name) for name in names])
    row = next(row for row in compared(found) if row.metric == "recovery.cut.switch_s")
    assert row.values[1].change
    assert standing_out(compared(found)) == ()
    told = "\n".join(lines(found))
    assert "better" not in told
    assert "worse" not in told


def test_valid_runs_are_judged_beside_an_invalid_one(run_of: RunOf) -> None:
    found = read_sides([run_of("passed"), run_of("doubtful"), run_of("later")])
    row = next(row for row in compared(found) if row.metric == "recovery.cut.switch_s")
    assert [value.status for value in row.values] == ["", "", "bad"]


def test_a_run_on_machines_is_reported(run_of: RunOf) -> None:
    (place,) = settings(read_sides([run_of("passed"), run_of("on machines")])).ran
    assert (place.path, place.values) == ("place", ("local", "2 machines: h0, h1"))


@pytest.mark.parametrize("count", [1, RUNS_MAX + 1])
def test_too_few_or_many_runs_are_refused(run_of: RunOf, count: int) -> None:
    with pytest.raises(InputError, match="takes 2 to"):
        read_sides([run_of("passed")] * count)


@pytest.mark.parametrize(("audience", "status"), [("topic", ""), ("all", "bad")])
def test_a_weaker_contract_with_fewer_deliveries_is_not_worse(
    sides: tuple[ComparedRun, ...], audience: str, status: str
) -> None:
    first, second = sides
    slow = {**second.record.summary, "throughput": {"events_per_s": 40.0}}
    record = second.record.run
    declared = replace(
        record.plan.declared, contract=replace(record.plan.declared.contract, audience=audience)
    )
    run = replace(record, plan=replace(record.plan, declared=declared))
    other = replace(second, record=replace(second.record, run=run, summary=slow))
    rows = {row.metric: row for row in compared((first, other))}
    assert rows["throughput.events_per_s"].values[1].status == status
    assert rows["recovery.cut.switch_s"].values[1].status == "bad"
