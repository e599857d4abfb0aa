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


@pytest.mark.slow
def test_events_go_round_through_the_other_regions(cutset: Cutset) -> None:
    run = cutset.run("link-failure", set=VIRTUAL, on="simulator", repeat=2)
    for figure in ("events.lost", "events.duplicated", "events.out_of_order"):
        assert run[figure] == (0, 0)
    assert min(run["recovery.cut.affected_pairs"]) > 0
    assert max(*run["recovery.cut.switch_s"], *run["recovery.restore.switch_s"]) < 2
    assert max(run["recovery.cut.catch_up_s"]) < 2


@pytest.mark.network
def test_the_packets_of_real_processes_tell_the_same(cutset: Cutset) -> None:
    run = cutset.run("link-failure", set=REAL, topology="three-regions", on="local", allow=ON_A_BUSY_MACHINE)
    for figure, value in (("agreement.held", True), ("events.lost", 0), ("events.corrupted", 0)):
        assert run[figure] == (value,)
    for figure in ("agreement.compared", "recovery.cut.affected_pairs", "recovery.cut.switch_s"):
        assert run[figure][0] > 0
