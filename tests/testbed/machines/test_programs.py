"""Systems of programs on machines: their folders and modules are sent, their needs are checked there."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.core.deliveries import read_records
from tests.systems.images.packed import configuration, digest, layer_of, saved
from tests.systems.on_packets import needs
from tests.systems.test_documentation import written
from tests.testbed.machines.lab import Lab
from tests.testbed.machines.labs.live_on_machines import CUTSET, wait_until_clean

MOSQUITTO = """\
name: bridges
topology: three-regions
system: mosquitto
parameters: {keep_alive: 5s, restart_s: 1}
roles: {broker: 1, publisher: 1, subscriber: 1}
workload: {event_size: 100B, rate: 50/s}
duration: 7s
drain: 20s
faults:
  - {name: cut, at: 1s, cut: [r0, r1], for: 1s}
  - {name: end, at: 3s, kill: r1/broker-0}
  - {name: again, at: 4s, restart: r1/broker-0}
"""
NATS = """\
name: new
topology: three-regions
system: nats
images: {server: ./new.tar}
roles: {server: 1, publisher: 1, subscriber: 1}
workload: {event_size: 100B, rate: 50/s}
duration: 2s
"""
TIMEOUT_S = 300.0
"""Limit of a run with its analysis, on a busy machine."""
INSTALLED = "/usr/sbin/mosquitto"

pytestmark = [
    *needs("mosquitto", always=True),
    pytest.mark.machines,
    pytest.mark.skipif(os.geteuid() != 0, reason="a lab of machines needs root"),
]


@pytest.fixture(scope="module")
def lab(lab_works: None) -> Iterator[Lab]:
    """Yield a lab of two machines."""
    with Lab(2) as lab:
        yield lab


@pytest.fixture(scope="module")
def inventory(lab: Lab) -> Path:
    """Return an inventory with r0 on h0 and the other regions on h1."""
    serves = {"h0": {"serves": ["r0"]}, "h1": {"serves": ["r1", "r2"]}}
    return lab.write_inventory("three-regions.yaml", machines=serves)


def done(lab: Lab, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return lab.run([*CUTSET, *command], timeout_s=TIMEOUT_S)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bridges") / "bridges.yaml"
    path.write_text(MOSQUITTO)
    return path


@pytest.fixture(scope="module")
def bridges(lab: Lab, inventory: Path, experiment: Path) -> RunDirectory:
    out = experiment.parent / "runs"
    said = done(lab, "run", experiment, "--on", inventory, "--out", out)
    assert said.returncode in {0, 1}, said.stderr
    [path] = out.iterdir()
    return RunDirectory.open(path)


def test_a_system_of_programs_runs_on_several_machines_as_on_one(bridges: RunDirectory) -> None:
    record, summary = bridges.read_run(), bridges.read_summary()
    assert record.outcome == "completed"
    assert [each.complete for each in record.shipped] == [True, True]
    assert summary["events"]["published"] > 700
    wrong = ("stray", "corrupted", "published_twice")
    assert [summary["events"][each] for each in wrong] == [0] * len(wrong)
    assert summary["agreement"]["compared"] > 9


def test_a_program_on_another_machine_is_killed_and_started_again(bridges: RunDirectory) -> None:
    ends = [each for each in bridges.read_run().processes if each.name == "r1/broker-0"]
    assert [each.machine for each in ends] == ["h1", "h1"]
    assert next(end.exit.signal for end in ends if end.exit is not None) == 9
    log = [json.loads(line) for line in bridges.log("r1-broker-0").read_text().splitlines()]
    assert sum("running" in line.get("text", "") for line in log) == 2


def test_folders_of_programs_and_records_come_back_to_where_they_are_on_one_machine(
    bridges: RunDirectory,
) -> None:
    hosts = [process.host for process in bridges.read_run().plan.processes]
    assert all(bridges.program(host).is_dir() and bridges.host_deliveries(host).is_file() for host in hosts)
    assert "listener 1883" in (bridges.program("r1-broker-0") / "mosquitto.conf").read_text()
    assert not list(bridges.path.glob("machines/*/programs"))


def test_versions_are_those_of_each_machine(bridges: RunDirectory) -> None:
    record = bridges.read_run()
    assert {name: set(each.versions) for name, each in zip(("h0", "h1"), record.machines, strict=True)} == {
        "h0": {"mosquitto", "paho.mqtt"},
        "h1": {"mosquitto", "paho.mqtt"},
    }
    assert str(record.versions["mosquitto"]).startswith("mosquitto version ")


def test_a_folder_of_the_users_own_is_sent_and_nothing_is_written_elsewhere(lab: Lab, tmp_path: Path) -> None:
    written(tmp_path)
    before = lab.standing()
    files = {name: set(machine.changed_files()) for name, machine in lab.machines.items()}
    given = ("--set", "duration=2s", "--set", "faults=[]", "--out", tmp_path / "runs", "--no-analyze")
    said = done(lab, "run", tmp_path / "relay.yaml", "--on", lab.inventory, *given)
    assert said.returncode == 0, said.stderr
    assert "deployed files of relay to 2" in said.stderr
    [path] = (tmp_path / "runs").iterdir()
    run = RunDirectory.open(path)
    subscribers = [each.host for each in run.read_run().plan.having(Trait.SUBSCRIBER)]
    assert all(len(read_records(run.host_deliveries(host).read_bytes())[0]) > 1 for host in subscribers)
    log = [json.loads(line) for line in run.log("r1-broker-0").read_text().splitlines()]
    [started] = [line["run"] for line in log if line["event"] == "started"]
    folder = lab["h1"].folder
    assert started[1].startswith(f"{folder}/code/")
    assert started[1].endswith("/own_programs/broker.py")
    wait_until_clean(lab, before)
    for name, machine in lab.machines.items():
        new = set(machine.changed_files()) - files[name]
        assert [each for each in new if not f"{each}/".startswith(f"{folder}/")] == []


@needs("nats", always=True)[2]
def test_an_image_is_sent_and_its_program_need_not_be_installed(
    lab: Lab, inventory: Path, tmp_path: Path
) -> None:
    layer = layer_of("nats-server")
    config = configuration([layer])
    saved(tmp_path / "new.tar", {"new:1": (config, [layer])})
    (tmp_path / "nats.yaml").write_text(NATS)
    given = ("--on", inventory, "--no-analyze", "--out", tmp_path / "runs")
    h1, installed = lab["h1"], str(Path(shutil.which("nats-server") or "").resolve())
    h1.run(["mv", installed, f"{installed}.away"])
    try:
        ran = done(lab, "run", tmp_path / "nats.yaml", *given)
    finally:
        h1.run(["mv", f"{installed}.away", installed])
    assert ran.returncode == 0, ran.stderr
    assert "sent images of nats to 2 of them" in ran.stderr
    [path] = (tmp_path / "runs").iterdir()
    run = RunDirectory.open(path)
    assert run.read_run().versions["new.tar"] == digest(config)
    got = [read_records(each.read_bytes())[0] for each in run.deliveries.glob("*subscriber*")]
    assert min(map(len, got)) > 20
    assert not list(run.path.glob("storage/*/image-copy/bin"))


def test_a_program_that_one_machine_lacks_is_named_before_anything_starts(
    lab: Lab, inventory: Path, experiment: Path, tmp_path: Path
) -> None:
    h1 = lab["h1"]
    h1.run(["mv", INSTALLED, f"{INSTALLED}.away"])
    try:
        ran = done(lab, "run", experiment, "--on", inventory, "--out", tmp_path)
    finally:
        h1.run(["mv", f"{INSTALLED}.away", INSTALLED])
    line = "h1: mosquitto needs software that is not installed there: `mosquitto` (apt-get install mosquitto)"
    assert (ran.returncode, ran.stderr.strip().splitlines()[-1]) == (3, f"cutset: {line}")
    assert list(tmp_path.iterdir()) == []
