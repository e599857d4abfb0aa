"""Runs of two systems side by side."""

import pytest

from analysis.pages.comparing.metrics import compared
from analysis.pages.comparing.sides import ComparedRun
from analysis.pages.comparing.systems import systems
from analysis.pages.report.run_reader import AnalysedRun
from experiments.records.rundir import RunDirectory
from tests.analysis.systems.test_scribe_trees import OVERRIDES
from tests.analysis.timelines.world import run_record

SUMMARIES = (
    {
        "fidelity": {"valid": True},
        "throughput": {"events_per_s": 400.0},
        "events": {"published": 100, "delivered": 800, "lost": 0},
        "latency": {"before_p95_ms": 50.0, "during_p95_ms": 900.0},
        "recovery": {"cut": {"switch_s": 1.5, "detect_s": None}},
        "wan": {"messages": 300, "bytes": 80_000, "copies_mean": 1.0, "copies_max": 1},
    },
    {
        "fidelity": {"valid": True},
        "throughput": {"events_per_s": 40.0},
        "events": {"published": 100, "delivered": 200, "lost": 1},
        "recovery": {"cut": {"switch_s": 3.0}},
        "wan": {"messages": 900, "bytes": None, "copies_mean": 2.5, "copies_max": 7},
    },
)


def sides(tmp_path, *records) -> tuple[ComparedRun, ...]:
    nothing: dict = dict.fromkeys(("throughput", "latency", "recovery", "fidelity", "missing"), ())
    return tuple(
        ComparedRun(letter, "", RunDirectory(tmp_path), AnalysedRun(run=record, summary=summary, **nothing))
        for letter, record, summary in zip("AB", records, SUMMARIES, strict=True)
    )


@pytest.fixture
def table(tmp_path):
    return systems(sides(tmp_path, run_record(), run_record(*OVERRIDES)))


def test_runs_of_one_system_have_no_such_table(tmp_path):
    assert systems(sides(tmp_path, run_record(), run_record())) is None


def test_promises_and_event_results_come_first(table):
    assert table.names == ("sprinkler", "scribe")
    said = {line.title: line.values for line in table.properties}
    assert said["A client receives"] == ("every event", "its topics")
    assert said["Each event reaches"] == ("8.0 clients", "2.0 clients")
    assert said["Link bytes per delivery"] == ("100\u00a0B", "not measured")


def test_numbers_of_both_are_beside_each_other_and_what_one_lacks_is_a_dash(table):
    found = {row.metric: [value.text for value in row.values] for _, rows in table.groups for row in rows}
    assert found["wan.copies_mean"] == ["1", "2.5"]
    assert found["wan.copies_max"] == ["1", "7"]
    assert found["wan.bytes"] == ["80\u00a0kB", "\u2013"]
    assert found["latency.during_p95_ms"] == ["900\u00a0ms", "\u2013"]
    assert found["recovery.cut.switch_s"] == ["1.50\u00a0s", "3.00\u00a0s"]
    assert "recovery.cut.detect_s" not in found
    assert [title for title, _ in table.groups] == [
        "Delivery", "Latency", "Recovery", "Cost of the links between regions",
    ]  # fmt: skip


@pytest.mark.parametrize(("other", "status"), [(OVERRIDES, ""), ((), "bad")])
def test_a_weaker_contract_with_fewer_deliveries_is_not_worse(tmp_path, other, status):
    rows = {row.metric: row for row in compared(sides(tmp_path, run_record(), run_record(*other)))}
    assert rows["throughput.events_per_s"].values[1].status == status
    assert rows["recovery.cut.switch_s"].values[1].status == "bad"
