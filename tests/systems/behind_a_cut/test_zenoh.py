"""Zenoh's routers on real packets: a link fails for longer than their lease, and they close it."""

import pytest

from experiments.records.rundir import RunDirectory
from tests.systems.on_packets import lost_events, needs, output, run_with_cut

pytestmark = needs("zenoh", always=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    return run_with_cut(
        tmp_path_factory.mktemp("zenoh"), "zenoh", "router",
        topology="two-regions", parameters="{lease: 1s}", cut_s=5, duration=9,
    )  # fmt: skip


@pytest.mark.parametrize("router", ["r0-router-0", "r1-router-0"])
def test_both_ends_close_the_link_and_reconnect(run, router):
    linked = [text.partition(":")[0] for text in output(run, router) if "linked:" in text]
    assert linked[-3:] == ["all linked", "linked", "all linked"]


def test_only_events_across_the_link_are_lost(run):
    """Allow different durations: some runs lose the events of a lease, others all of one direction until the
    heal.
    """
    summary = run.read_summary()
    events = summary["events"]
    assert events["published"] > 700
    lost = lost_events(run)
    over_the_link = {(1, "r0-subscriber-0"), (0, "r1-subscriber-0")}
    assert set(lost) >= over_the_link
    if summary["fidelity"]["valid"]:  # where others have the processors, other leases end, too
        assert set(lost) == over_the_link
    assert sum(lost.values()) == events["lost"]
    assert events["stray"] == events["corrupted"] == events["published_twice"] == 0
    assert run.read_summary()["agreement"]["held"] is True
