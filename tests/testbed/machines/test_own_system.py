"""Systems that need more than what every machine gets: a file of the user's, an installed package."""

import json
import os
from pathlib import Path

import pytest

from tests.testbed.machines.lab import Lab
from tests.testbed.machines.labs.live_on_machines import CUTSET, END_TIMEOUT_S

BROKER = Path(__file__).parents[2] / "broker"
ROLES = "roles={broker: 1, publisher: 1, subscriber: 1}"
SETTINGS = ("topology=two-regions", "faults=[]", "duration=4s", ROLES)

pytestmark = [
    pytest.mark.network,
    pytest.mark.machines,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab of machines needs root"),
]


def test_a_file_of_the_users_own_is_sent_and_run(pair: Lab, tmp_path: Path) -> None:
    command = [*CUTSET, "--system-module", BROKER / "topic_broker.py", "run", BROKER / "brokers.yaml"]
    command += [word for setting in SETTINGS for word in ("--set", setting)]
    with pair.popen([*command, "--on", pair.inventory, "--out", tmp_path], stdout=-1, stderr=-1) as process:
        said = process.communicate(timeout=END_TIMEOUT_S)
    [run] = tmp_path.iterdir()
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["events"]["published"] > 500, summary["events"]["delivered"] > 500) == (True, True), said
    assert (summary["events"]["lost"], summary["events"]["stray"]) == (0, 0), said
    assert json.loads((run / "run.json").read_text())["machines"], said


SPACE = (
    "topology=two-regions",
    "faults=[]",
    "duration=6s",
    "roles={publisher: 1, subscriber: 2}",
    "workload.rate=40/s",
    "workload.subscriptions.within=1s",
)


def test_a_systems_imports_are_sent_along(pair: Lab, tmp_path: Path) -> None:
    command = [*CUTSET, "run", "meghdoot-link-failure"]
    command += [word for setting in SPACE for word in ("--set", setting)]
    with pair.popen([*command, "--on", pair.inventory, "--out", tmp_path], stdout=-1, stderr=-1) as process:
        said = process.communicate(timeout=END_TIMEOUT_S)
    [run] = tmp_path.iterdir()
    events = json.loads((run / "summary.json").read_text())["events"]
    assert (events["published"] > 10, events["delivered"] > 10) == (True, True), said
    assert (events["lost"], events["stray"]) == (0, 0), said
