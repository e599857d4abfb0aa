"""Complete runs on three machines of the lab; two of them share a region."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.records.run_record import record_to_json
from tests.testbed.leftovers import wait_until
from tests.testbed.machines.lab import NEEDS_LAB, Lab
from tests.testbed.machines.labs.live_on_machines import (
    CUTSET,
    END_TIMEOUT_S,
    RunOnMachines,
    wait_until_clean,
)
from tests.testbed.machines.labs.shortages import fill_folder, limit_folder, occupied_udp_port

SERVES = {"h0": {"serves": ["r0"]}, "h1": {"serves": ["r1"]}, "h2": {"serves": ["r1"]}}
LEASE_S = 15
"""Lease of runs whose expiry is waited for: longer than any stall of a busy machine."""
TIDY_END_S = 50.0
"""Time for a machine to end a run of this size when its lease expires: seconds, on a busy machine more, but
never until it is killed (`testbed.machines.agent.supervisor.STOP_S`).
"""
DRAIN = "60s"
"""Drain time of runs whose tests need a drained run: a busy machine takes longer."""
SUPERVISOR = "testbed.machines.agent"

pytestmark = NEEDS_LAB


@pytest.fixture(scope="module")
def lab(lab_works: None) -> Iterator[Lab]:
    """Yield a lab of three machines."""
    with Lab(3) as lab:
        yield lab


@pytest.fixture(scope="module")
def before(lab: Lab) -> dict[str, Any]:
    """Return the states of the machines before any run."""
    return {name: machine.standing() for name, machine in lab.machines.items()}


@pytest.fixture(scope="module")
def inventory(lab: Lab, before: dict[str, Any]) -> Path:
    """Return an inventory with r0 on h0, and r1 on h1 and h2."""
    return lab.write_inventory("two.yaml", machines=SERVES)


@pytest.fixture(scope="module")
def short_lease(lab: Lab, before: dict[str, Any]) -> Path:
    """Return an inventory with a short lease, so that no machine waits long for a lost controller."""
    return lab.write_inventory("lease.yaml", machines=SERVES, lease=f"{LEASE_S}s")


@pytest.fixture(scope="module")
def analysed(
    lab: Lab, before: dict[str, Any], inventory: Path, tmp_path_factory: pytest.TempPathFactory
) -> RunOnMachines:
    """Return a run whose connections to two machines broke in the middle, one closed and one silent."""
    folder = tmp_path_factory.mktemp("analysed")
    with RunOnMachines(lab, folder, inventory, analyze=True, drain=DRAIN) as run:
        run.wait_for("all nodes are ready")
        lab["h1"].kill_connections()
        lab["h2"].cut_control()
        run.wait_for("restore: r0-r1 up")
        lab["h2"].restore_control()
        run.end()
    return run


def test_a_run_whose_connections_break_loses_no_file(analysed: RunOnMachines) -> None:
    summary = analysed.run.read_summary()
    assert summary["events"]["lost"] == 0
    assert summary["events"]["published"] > 10_000
    assert analysed.record.outcome == "completed"
    assert any("the run continues, reconnecting" in line for line in analysed.said)


def test_faults_take_effect_on_both_machines_of_a_link_at_the_planned_time(
    analysed: RunOnMachines,
) -> None:
    content = record_to_json(analysed.record)
    zeros = {machine["name"]: machine["zero_ns"] for machine in content["machines"]}
    changes = [
        (
            content["plan"]["changes"][change["index"]]["fault"],
            change["machine"],
            content["plan"]["changes"][change["index"]]["direction"],
            change["requested_ns"] - zeros[change["machine"]],
        )
        for change in content["changes"]
    ]
    assert sorted(changes) == [
        ("cut", "h0", "forward", 1_000_000_000),
        ("cut", "h1", "backward", 1_000_000_000),
        ("restore", "h0", "forward", 2_000_000_000),
        ("restore", "h1", "backward", 2_000_000_000),
    ]
    assert all(change["applied_ns"] >= change["requested_ns"] for change in content["changes"])


def test_every_machine_s_captures_logs_and_deliveries_are_in_the_one_run_directory(
    analysed: RunOnMachines,
) -> None:
    run, content = analysed.run, record_to_json(analysed.record)
    assert {entry["machine"] for entry in content["captures"]} == {"h0", "h1", "h2"}
    for entry in content["captures"]:
        assert (run.path / entry["file"]).stat().st_size > 24
        assert entry["kernel_drops"] == 0
    hosts = {process["host"] for process in content["processes"]}
    assert len(hosts) == 8
    assert all(run.log(host).stat().st_size and run.host_deliveries(host).is_file() for host in hosts)
    assert [machine["complete"] for machine in content["shipped"]] == [True, True, True]


def test_machines_are_unchanged_except_for_the_code(
    lab: Lab, before: dict[str, Any], analysed: RunOnMachines
) -> None:
    wait_until_clean(lab, before)
    for machine in lab.machines.values():
        folder = machine.path(machine.folder)
        assert [path.name for path in (folder / "runs").iterdir()] == []
        assert len(list((folder / "code").iterdir())) == 1


def test_files_of_a_hanging_supervisor_are_incomplete_and_stay_there(
    lab: Lab, before: dict[str, Any], short_lease: Path, tmp_path: Path
) -> None:
    with RunOnMachines(lab, tmp_path, short_lease, duration="10s") as run:
        run.wait_for("restore: r0-r1 up")
        assert lab["h2"].kill(SUPERVISOR, "start", signal_number=signal.SIGSTOP) >= 1
        assert run.end() == 1
        shipped = {each["machine"]: each for each in record_to_json(run.record)["shipped"]}
    folder = lab["h2"].path(f"{lab['h2'].folder}/runs/{run.run.name}")
    assert {name: each["complete"] for name, each in shipped.items()} == {"h0": True, "h1": True, "h2": False}
    assert "the run has not ended there" in shipped["h2"]["problem"]
    assert (folder / "run.json").is_file()
    seen, cleaned = (lab.run([*CUTSET, "hosts", short_lease, *more]) for more in ([], ["--clean"]))
    assert f"h2: without a controller: {run.run.name}" in seen.stdout
    assert f"h2: ended {run.run.name}" in " ".join(cleaned.stdout.split())
    fetched = lab.run([*CUTSET, "fetch", run.run.path, "--on", short_lease])
    assert fetched.returncode == 0, fetched.stderr
    assert all(machine["complete"] for machine in record_to_json(run.record)["shipped"])
    assert not folder.exists()
    wait_until_clean(lab, before, timeout_s=LEASE_S + TIDY_END_S)


def test_hosts_are_clean_within_the_lease_when_the_controller_is_killed_and_files_can_be_fetched(
    lab: Lab, before: dict[str, Any], short_lease: Path, tmp_path: Path
) -> None:
    with RunOnMachines(lab, tmp_path, short_lease, duration="60s") as run:
        run.wait_for("restore: r0-r1 up")
        run.kill()
    assert run.record.outcome is None
    wait_until_clean(lab, before, timeout_s=LEASE_S + TIDY_END_S)
    fetched = lab.run([*CUTSET, "fetch", run.run.path, "--on", short_lease])
    assert fetched.returncode == 0, fetched.stderr
    content = record_to_json(run.record)
    assert content["outcome"] == "interrupted"
    assert any(f"no message from the controller for {LEASE_S} s" in text for text in content["problems"])
    assert (run.run.captures / "r1-driver-0-eth0.pcap").stat().st_size > 1000
    assert not any(each.path(f"{each.folder}/runs/{run.run.name}").exists() for each in lab.machines.values())


def test_a_second_ctrl_c_ends_shipping_at_once_and_records_arrived_files(
    lab: Lab, before: dict[str, Any], tmp_path: Path
) -> None:
    """Ship so slowly that a wait for all files would take too long."""
    slowly = {"when": "end", "rate": "20kbit"}
    inventory = lab.write_inventory("slow.yaml", machines=SERVES, shipping=slowly)
    with RunOnMachines(lab, tmp_path, inventory, duration="60s") as run:
        run.wait_for("restore: r0-r1 up")
        run.process.send_signal(signal.SIGINT)
        wait_until(lambda: any(run.run.captures.iterdir()), "the first file", END_TIMEOUT_S)
        fetched = lab.run([*CUTSET, "fetch", run.run.path, "--on", inventory])
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 130
        content = record_to_json(run.record)
    assert fetched.returncode == 3
    assert f"{run.run.name}: another command is using it (" in fetched.stderr
    assert content["outcome"] is not None
    assert [machine["problem"] for machine in content["shipped"]] == ["it was given up"] * 3


def test_ctrl_c_ends_a_run_tidily_whose_links_the_site_shapes_and_only_cuts_them(
    lab: Lab, before: dict[str, Any], tmp_path: Path
) -> None:
    inventory = lab.write_inventory("site.yaml", machines=SERVES, shaping="emulab")
    with RunOnMachines(lab, tmp_path, inventory, duration="60s") as run:
        run.wait_for("restore: r0-r1 up")
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 130
        content = record_to_json(run.record)
    assert content["outcome"] == "interrupted"
    quickest = [min(probe["rtt_us"]) for probe in content["probes"]]
    assert quickest
    assert max(quickest) < 40_000  # 2 x 20 ms are the site's to make, and the lab makes none
    cut = {(each["link"], each["direction"]): each["dropped_blackhole"] for each in content["counters"]}
    assert cut["r0-r1", "forward"] > 0
    assert cut["r0-r1", "backward"] > 0
    wait_until_clean(lab, before)


def test_files_lost_with_a_supervisor_or_machine_are_reported(
    lab: Lab, before: dict[str, Any], short_lease: Path, tmp_path: Path
) -> None:
    def shipped() -> bool:
        capture = run.run.captures / "r1-driver-0-eth0.pcap"
        return capture.exists() and capture.stat().st_size > 1000

    try:
        with RunOnMachines(lab, tmp_path, short_lease, duration="20s") as run:
            run.wait_for("restore: r0-r1 up")  # tcpdump has written some of what it holds by then
            assert lab["h1"].kill(SUPERVISOR, "start") >= 1
            wait_until(shipped, "something of h2")
            lab["h2"].power_off()
            assert run.end() == 1
            content = record_to_json(run.record)
    finally:
        lab["h2"].power_on()
    assert content["outcome"] == "crashed"
    assert any(text.startswith("h1: lost for the run: no supervisor") for text in content["problems"])
    assert any(text.startswith("h2: lost for the run") for text in content["problems"])
    # h0 went on to the end, and all that h1 had captured is here.
    ends = [process["exit"] for process in content["processes"] if process["machine"] == "h0"]
    assert [end["expected"] for end in ends] == [True] * 4
    assert [machine["complete"] for machine in content["shipped"]] == [True, True, False]
    assert (run.run.captures / "r1-proxy-0-eth0.pcap").stat().st_size > 1000
    assert shipped()
    assert "captures/r1-driver-0-eth0.pcap" in {file["file"] for file in content["shipped"][2]["partial"]}


def test_a_full_disk_ends_the_run_with_a_message_and_keeps_captures(
    lab: Lab, before: dict[str, Any], inventory: Path, tmp_path: Path
) -> None:
    folder = lab["h0"].folder
    limit_folder(lab["h0"], 1 << 30)
    try:
        with RunOnMachines(lab, tmp_path, inventory, duration="60s") as run:
            run.wait_for("all nodes are ready")
            fill_folder(lab["h0"])
            run.end()
            content = record_to_json(run.record)
    finally:
        lab["h0"].run(["umount", "--lazy", folder])
    place = f"{folder}/runs/{run.run.name}"
    stopped = rf"problem: h0: stopped before its time: only [0-8] MiB of disk are left at {place}"
    assert any(re.fullmatch(stopped, line) for line in run.said), run.said
    assert content["outcome"] == "interrupted"
    assert [machine["complete"] for machine in content["shipped"]] == [True, True, True]
    assert (run.run.captures / "r0-driver-0-eth0.pcap").stat().st_size > 1000


def test_a_port_in_use_is_reported_before_the_start(
    lab: Lab, before: dict[str, Any], inventory: Path, tmp_path: Path
) -> None:
    with occupied_udp_port(lab["h1"], 4789), RunOnMachines(lab, tmp_path, inventory) as run:
        assert run.end() == 3
    assert any("h1: UDP port 4789 is used by python3" in line for line in run.said)
    assert not run.out.exists()
