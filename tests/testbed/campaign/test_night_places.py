"""Nights whose runs are on the machines of an inventory."""

import os

import pytest

from experiments.campaigns.campaign import RunState
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from testbed.backends import ssh_hosts
from testbed.backends.simulator import Simulator
from testbed.errors import MachineError
from testbed.machines.inventory import Inventory
from testbed.runner.run_control import Follow, RunResult
from tests.testbed.campaign.night_fixtures import Nights
from tests.testbed.machines.lab import Lab, why_no_lab
from tests.testbed.runner.live import CUTSET, write_experiment

TWO = """inventory: lab
user: cutset
key: ./id_lab
machines:
  - {name: h0, control: h0.example.org, experiment: 10.10.1.10}
  - {name: h1, control: h1.example.org, experiment: 10.10.1.11}
"""


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


class Machines(Simulator):
    """A substitute for machines by SSH, which records logins and runs."""

    def __init__(self, came: list[str]) -> None:
        self._came = came

    def __call__(self, inventory: Inventory, *_: object) -> "Machines":
        self._came.append("opened " + ", ".join(machine.name for machine in inventory.machines))
        return self

    def __enter__(self) -> "Machines":
        return self

    def __exit__(self, *_: object) -> None:
        self._came.append("closed")

    def execute(self, run: RunDirectory, follow: Follow) -> RunResult:
        self._came.append(f"run of {read_json(run.run_json)['plan']['experiment']}")
        raise MachineError("the machines are asleep")


def test_runs_of_an_entry_use_its_inventory_with_one_login(nights, monkeypatch):
    came: list[str] = []
    monkeypatch.setattr(ssh_hosts, "SshBackend", Machines(came))
    (nights.folder / "two.yaml").write_text(TWO)
    nights.suite("name: spread, on: ./two.yaml, repeat: 2")
    assert nights.run() == 3
    assert came == ["opened h0, h1", "run of tiny", "run of tiny", "closed"]
    assert [(run.backend, run.problem) for run in nights.record.runs] == [
        (str(nights.folder / "two.yaml"), "the machines are asleep")
    ] * 2


def test_a_missing_inventory_is_refused_before_anything_runs(nights, capsys):
    nights.suite("name: good", "name: spread, on: ./none.yaml")
    assert nights.run() == 2
    assert "none.yaml" in capsys.readouterr().err
    assert not nights.directory.path.exists()


@pytest.mark.network
@pytest.mark.machines
@pytest.mark.skipif(os.geteuid() != 0, reason="a lab of machines needs root")
def test_a_night_on_machines_of_a_lab(nights, tmp_path):
    if (reason := why_no_lab()) is not None:
        pytest.skip(reason)
    write_experiment(tmp_path)
    with Lab(2) as lab:
        serve = {"h0": {"serves": ["r0"]}, "h1": {"serves": ["r1"]}}
        inventory = lab.write_inventory("two.yaml", machines=serve)
        nights.suite(f"name: spread, on: {inventory}")
        done = lab.run([*CUTSET, *nights.command()])
    [run] = nights.record.runs
    assert run.state is RunState.DONE, done.stderr
    assert run.backend == str(inventory)
    made = nights.directory.run_of(run)
    assert {machine["name"] for machine in read_json(made.run_json)["machines"]} == {"h0", "h1"}
    assert made.read_summary()["events"]["lost"] == 0
    assert nights.kept() == {run.run: 1}
    assert (nights.history / "site/index.html").is_file()
