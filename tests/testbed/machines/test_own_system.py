"""Systems that need additional code on machines: a user's file, an installed package."""

from pathlib import Path

import pytest

from experiments.declared import Trait
from experiments.records.run_record import Outcome
from experiments.records.rundir import RunDirectory
from node.core.deliveries import read_records
from tests.testbed.machines.lab import NEEDS_LAB, Lab
from tests.testbed.machines.labs.live_on_machines import CUTSET

BROKER = Path(__file__).parents[2] / "broker"
ROLES = "roles={broker: 1, publisher: 1, subscriber: 1}"
SETTINGS = ("topology=two-regions", "faults=[]", "duration=3s", ROLES)

TIMEOUT_S = 300.0
"""Limit of a run with its drain, on a busy machine."""

pytestmark = NEEDS_LAB

SPACE = (
    "topology=two-regions",
    "faults=[]",
    "duration=3s",
    "roles={publisher: 1, subscriber: 2}",
    "workload.rate=40/s",
    "workload.subscriptions.within=1s",
)


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (("--system-module", BROKER / "topic_broker.py", "run", BROKER / "brokers.yaml"), SETTINGS),
        (("run", "meghdoot-link-failure"), SPACE),
    ],
    ids=["a file of the user's own", "a system that imports NumPy"],
)
def test_the_needs_of_a_system_are_sent_with_the_code(
    pair: Lab, tmp_path: Path, arguments: tuple[str | Path, ...], settings: tuple[str, ...]
) -> None:
    given = [word for setting in settings for word in ("--set", setting)]
    where = ("--on", pair.inventory, "--out", tmp_path, "--no-analyze")
    done = pair.run([*CUTSET, *arguments, *given, *where], timeout_s=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    run = RunDirectory(next(tmp_path.iterdir()))
    record = run.read_run()
    assert (record.outcome, len(record.machines)) == (Outcome.COMPLETED, 2)
    subscribers = [each.host for each in record.plan.having(Trait.SUBSCRIBER)]
    assert all(len(read_records(run.host_deliveries(host).read_bytes())[0]) > 1 for host in subscribers)
