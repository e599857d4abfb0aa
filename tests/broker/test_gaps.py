"""If no message shows the route of events, gaps in the deliveries show the effect of a fault."""

import pyarrow.parquet as pq
import pytest

from experiments.records.rundir import RunDirectory
from node.systems import build_machine

pytestmark = pytest.mark.slow

HUB = "r0"


def over_a_hub(spec, rng):
    """Build a broker that forwards events to other regions via a hub region."""
    machine = build_machine(spec, rng)
    if spec.role == "broker":
        usual, at_hub = machine.pass_on, spec.region == HUB

        def pass_on(message, *, from_broker):
            everyone = machine.peers
            owner = f"r{message.topic % 4}"
            machine.peers = {
                name: connection
                for name, connection in everyone.items()
                if (not name.startswith(owner) if at_hub else name.startswith(HUB))
            }
            usual(message, from_broker=from_broker and not at_hub)
            machine.peers = everyone

        machine.pass_on = pass_on
    return machine


@pytest.fixture
def recovery_with(summary_with, tmp_path):
    """Return a function that gives the summary of the fault `cut` and its table rows, for this build."""

    def run(build, *settings):
        summary = summary_with("brokers.yaml", build, *settings)
        [path] = tmp_path.iterdir()
        rows = pq.read_table(RunDirectory(path).table("recovery")).to_pylist()
        notes = [note for note in summary["fidelity"]["notes"] if note.startswith("recovery.cut")]
        return summary["recovery"]["cut"], [row for row in rows if row["fault"] == "cut"], notes

    return run


def ends(row):
    """Return the region of a row's stream, and its client's."""
    return f"r{row['stream'] % 4}", row["client"].partition("-")[0]


STEADY = "workload.subscriptions={each: 4}"
CUT_OF_HUB = ("faults=[{name: cut, at: 4500ms, cut: [r0, r3], for: 3s}]", STEADY)


def test_a_pair_whose_events_stop_is_affected_though_its_own_route_is_whole(recovery_with):
    figures, rows, _ = recovery_with(over_a_hub, *CUT_OF_HUB)
    by = {row["affected_by"]: set() for row in rows}
    for row in rows:
        by[row["affected_by"]].add(ends(row))
    inner = {"r1", "r2"}
    over_hub = {("r3", region) for region in inner} | {(region, "r3") for region in inner}
    assert by["gap"] == over_hub
    assert by["route"] == {("r0", "r3"), ("r3", "r0")}
    assert figures["affected_pairs"] == sum(row["affected"] for row in rows)
    for row in rows:
        if row["affected_by"] == "gap":
            assert 3.0 < row["switch_s"] <= row["settled_s"] < 5.0


def test_a_cut_that_nothing_crosses_affects_no_pair_by_gaps(recovery_with):
    figures, rows, _ = recovery_with(over_a_hub, STEADY)
    assert "gap" not in {row["affected_by"] for row in rows}
    assert figures["affected_pairs"] == sum(row["affected_by"] == "route" for row in rows)


def test_the_summary_reports_too_few_events_before_the_cut(recovery_with):
    early = ("faults=[{name: cut, at: 600ms, cut: [r0, r3], for: 3s}]", STEADY)
    _, rows, notes = recovery_with(over_a_hub, *early)
    unknown = [row for row in rows if row["affected_by"] == "unknown"]
    assert unknown
    assert not any(row["affected"] for row in unknown)
    assert any(f"whether it affected {len(unknown)} streams at clients is unknown" in note for note in notes)
