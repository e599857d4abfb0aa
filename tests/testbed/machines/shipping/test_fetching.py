"""`cutset fetch` copies the remaining files of a run from the pair of machines."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from experiments.loader import load_experiment
from experiments.records.json_files import read_json
from experiments.records.run_record import Outcome, RunPhase
from experiments.records.rundir import RunDirectory
from testbed.machines.inventory import LEASE_US
from testbed.machines.run_folders import STATE
from testbed.machines.shipping.fetching import TIDY_END_S
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from tests.run_json import set_run
from tests.testbed.machines.lab import NEEDS_LAB, ControllerProcess, Lab
from tests.testbed.machines.shipping.machines import noise, write_files
from tests.testbed.runner.live import CUTSET, write_experiment
from topologies.loader import load_topology

MIB = 1 << 20
ZERO_NS = 1_800_000_000 * 10**9
HOLDER = """\
python3 -c 'import signal; signal.pause()' -m testbed.machines.agent start "$0" >/dev/null 2>&1 &
echo $! > /var/tmp/holder
"""
"""A process that looks like a run's supervisor; $0 is the run's folder."""

pytestmark = NEEDS_LAB


@pytest.fixture
def run(pair: Lab, tmp_path: Path) -> RunDirectory:
    """Return a run whose controller died before shipping: only the plan and the machines are known here."""
    experiment = load_experiment(str(write_experiment(tmp_path)))
    plan = make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="auto")
    run = prepare(tmp_path, plan, {"experiment": {}, "topology": {}})
    set_run(run, machines=[{"name": name, "hosts": [], "zero_ns": None} for name in pair.machines])
    for number, machine in enumerate(pair.machines.values()):
        write_files(folder(pair, run, machine.name), machine_files(run, number))
    return run


def folder(pair: Lab, run: RunDirectory, name: str) -> Path:
    """Return the run's folder on a machine."""
    return pair[name].path(f"{pair[name].folder}/runs/{run.name}")


def machine_files(run: RunDirectory, number: int) -> dict[str, bytes]:
    """Return the files of a machine after its part of the run."""
    content = read_json(run.run_json) | {
        "phase": RunPhase.COLLECTED,
        "outcome": Outcome.COMPLETED,
        "times": {"zero_ns": ZERO_NS + number},
        "captures": [{"file": f"captures/r{number}-gw-eth0.pcap", "packets": 7}],
        "problems": [f"something on machine {number}"],
        "links": "relay",
        "tcp": {},
    }
    return {
        "run.json": json.dumps(content).encode(),
        f"captures/r{number}-gw-eth0.pcap": noise(3 * MIB, number),
        f"logs/r{number}-proxy-0.jsonl": b"{}\n",
    }


def fetch(pair: Lab, run: RunDirectory, inventory: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run `cutset fetch` on the controller."""
    return pair.run([*CUTSET, "fetch", run.path, "--on", inventory or pair.inventory])


def entries(run: RunDirectory, key: str) -> dict[str, Any]:
    """Return a list of run.json by machine."""
    return {
        entry.get("machine") or entry["name"]: entry for entry in json.loads(run.run_json.read_text())[key]
    }


def test_files_stay_on_machines_until_they_are_fetched(pair: Lab, run: RunDirectory) -> None:
    small = {"disk": "5MB"}
    nobody_there = pair.write_inventory("wrong.yaml", machines={"h1": {"port": 2222}}, shipping=small)
    first = fetch(pair, run, nobody_there)
    assert first.returncode == 1
    assert "h1: nothing was shipped: h1: cannot be reached by SSH" in first.stdout
    assert f"to continue: cutset fetch {run.path}" in first.stdout
    assert entries(run, "shipped")["h0"]["complete"]
    assert read_json(run.run_json)["outcome"] == Outcome.CRASHED
    assert folder(pair, run, "h1").exists()

    second = fetch(pair, run, pair.write_inventory("small.yaml", shipping=small))
    assert second.returncode == 1
    assert "h1: the limit of 5 MB on this run's files is reached" in second.stdout
    assert folder(pair, run, "h1").exists()

    third = fetch(pair, run)
    assert third.returncode == 0, third.stdout
    assert third.stdout == f"All files of {run.name} are here: cutset analyze {run.path}\n"
    for number, name in enumerate(pair.machines):
        assert (run.captures / f"r{number}-gw-eth0.pcap").read_bytes() == noise(3 * MIB, number)
        assert not folder(pair, run, name).exists(), "the machine is to be cleared of it"
    content = read_json(run.run_json)
    assert (content["phase"], content["outcome"]) == (RunPhase.COLLECTED, Outcome.COMPLETED)
    assert content["problems"] == ["h0: something on machine 0", "h1: something on machine 1"]
    assert entries(run, "captures")["h1"]["file"] == "captures/r1-gw-eth0.pcap"
    assert [entry["zero_ns"] for entry in entries(run, "machines").values()] == [ZERO_NS, ZERO_NS + 1]
    again = fetch(pair, run)
    assert (again.returncode, again.stdout) == (0, third.stdout)


def waits_for_h0(pair: Lab, run: RunDirectory) -> ControllerProcess:
    """Start `cutset fetch`, which waits because a process on h0 holds the run there."""
    there = folder(pair, run, "h0")
    going_on = json.loads(machine_files(run, 0)["run.json"]) | {"phase": "running", "outcome": None}
    (there / "run.json").write_text(json.dumps(going_on))
    pair["h0"].run(["sh", "-c", HOLDER, f"{pair['h0'].folder}/runs/{run.name}"])
    pid = int(pair["h0"].path("/var/tmp/holder").read_text())
    stat = pair["h0"].run(["cat", f"/proc/{pid}/stat"]).stdout
    (there / STATE).write_text(json.dumps({"pid": pid, "started_ticks": int(stat.split()[21])}))
    process: ControllerProcess = pair.popen(
        [*CUTSET, "fetch", run.path, "--on", pair.inventory],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = ""
    while "h0: waiting until its lease is over" not in said:
        said = process.stderr.readline()
        assert said
    assert said.endswith(f"for {LEASE_US / 1e6 + TIDY_END_S:g} s at most\n")
    return process


def let_go(pair: Lab, run: RunDirectory) -> int:
    """End the processes that hold the run on h0; return their number."""
    return pair["h0"].kill("testbed.machines.agent", "start", run.name)


def test_a_machine_whose_run_has_not_ended_is_waited_for(pair: Lab, run: RunDirectory) -> None:
    """Let files grow until the holder ends."""
    process = waits_for_h0(pair, run)
    write_files(folder(pair, run, "h0"), {"captures/late.pcap": b"late", **machine_files(run, 0)})
    assert let_go(pair, run) == 1
    assert process.wait(60) == 0
    assert (run.captures / "late.pcap").read_bytes() == b"late"


def test_one_ctrl_c_ends_the_wait_and_prints_how_to_continue(pair: Lab, run: RunDirectory) -> None:
    process = waits_for_h0(pair, run)
    try:
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)  # less than it would wait
    finally:
        process.kill()
        let_go(pair, run)
    assert process.returncode == 130
    again = f"cutset fetch {run.path} --on {pair.inventory}"
    assert stdout == f"The fetched files are kept; to continue: {again}\n"
    assert stderr.endswith("cutset: interrupted\n")
