"""A program, and what it starts, wait longer for a disk that is slow; then no longer."""

import json
import shutil
from pathlib import Path

import pytest

from tests.systems.on_packets import carried_out

EXPERIMENT = """\
name: slow-disk
topology: one-region
system: ./patience
roles: {server: 1, publisher: 1}
workload: {event_size: 100B, rate: 10/s}
duration: 7s
captures: none
faults:
  - {name: slow, at: 1s, slow-disk: r0/server-0, sync: 2s}
  - {name: end, at: 2s, kill: r0/server-0}
  - {name: again, at: 2200ms, restart: r0/server-0}
  - {name: fast, at: 4s, restore: slow}
"""


@pytest.mark.network
@pytest.mark.slow
def test_a_program_waits_for_its_slow_disk_also_when_it_is_started_again(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parent / "slow_disk", tmp_path / "patience")
    run = carried_out(tmp_path, EXPERIMENT)
    lines = map(json.loads, run.log("r0-server-0").read_text().splitlines())
    assert [line["text"] for line in lines if line["event"] == "output"] == ["at once", "waited", "at once"]
    carried = [(str(change.action), applied.applied_ns) for change, applied in run.read_run().carried_out]
    assert [action for action, _ in carried] == ["slow-disk", "kill", "restart", "unslow-disk"]
    assert all(applied_ns is not None for _, applied_ns in carried)
