"""The main job as a nightly check: a link fails and comes back, and no event is lost."""

from typing import Any

import pytest

from testbed.pytest_plugin.fixture import Cutset

SHORT: dict[str, Any] = {
    "duration": "6s",
    "workload.rate": "300/s",
    "faults": [
        {"name": "cut", "at": "1s", "cut": ["r0", "r1"]},
        {"name": "restore", "at": "4s", "restore": ["r0", "r1"]},
    ],
}
VIRTUAL = {**SHORT, "captures": "none"}
REAL = {**SHORT, "roles": {"proxy": 1, "driver": 1, "client": 1}}
ON_A_BUSY_MACHINE = ["invalid"]  # its figures show nothing then, but what was delivered is as it should be


@pytest.mark.topologies("four-regions")
@pytest.mark.slow
def test_events_go_round_through_the_other_regions(cutset: Cutset) -> None:
    run = cutset.run("link-failure", set=VIRTUAL, on="simulator", repeat=2)
    assert run.events.lost == 0
    assert run.events.duplicated == 0
    assert run.events.out_of_order == 0
    assert run.recovery.cut.affected_pairs > 0
    assert run.recovery.switch_s.p95 < 2
    assert run.recovery.cut.catch_up_s < 2


@pytest.mark.network
def test_the_packets_of_real_processes_tell_the_same(cutset: Cutset) -> None:
    run = cutset.run("link-failure", set=REAL, topology="three-regions", on="local", allow=ON_A_BUSY_MACHINE)
    assert run.agreement.held
    assert run.agreement.compared > 0
    assert run.events.lost == 0
    assert run.events.corrupted == 0
    assert run.recovery.cut.affected_pairs > 0
    assert run.recovery.cut.switch_s > 0
