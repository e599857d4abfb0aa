"""Background traffic in plans: separate hosts, commands derived from the plan, and refusals."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.loader import load_experiment
from experiments.planned.plan import Plan, plan_from_json, plan_to_json
from testbed.backends.ssh_hosts import SshBackend
from testbed.capturing.capture_size import capture_bytes_per_s
from testbed.cli import main
from testbed.faults.interactive import InteractiveSchedule
from testbed.machines.inventory import load_inventory
from testbed.sandbox.requirements import RUN_TOOLS
from testbed.traffic import client_command, server_command
from tests.plans import plan_named
from topologies.errors import InputError
from topologies.loader import load_topology

BACKUP = "{name: backup, from: hub, to: w, tcp: 2, at: 1s, for: 4s}"
VIDEO = "{name: video, from: n, to: w, udp: 1mbit, up: 2s, down: 13s}"
INVENTORY = """
inventory: lab
user: cutset
folder: /var/tmp/cutset
machines:
  - {name: h0, control: 192.0.2.1, experiment: 198.51.100.1}
"""
TRAFFIC = f"traffic=[{BACKUP}, {VIDEO}]"


def plan_of(*overrides: str) -> Plan:
    return plan_named("star-outages", *overrides, links="relay")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(TRAFFIC)


def test_traffic_has_its_own_hosts_and_changes_nothing_else(plan):
    plain = plan_of()
    added = [host for host in plan.hosts if host not in plain.hosts]
    assert [host.name for host in added] == ["hub-traffic", "n-traffic", "w-traffic"]
    assert len({host.address for host in plan.hosts}) == len(plan.hosts)
    assert [host for host in plan.hosts if host not in added] == list(plain.hosts)
    assert {link.name for link in plan.links} - {link.name for link in plain.links} == {
        f"lan-{host.name}" for host in added
    }
    assert (plan.processes, plan.captures, plan.changes) == (plain.processes, plain.captures, plain.changes)


def test_each_burst_has_its_own_port(plan):
    backup, video = plan.traffic
    assert [(burst.at_us, burst.length_s, burst.port) for burst in backup.bursts] == [(1_000_000, 4, 5201)]
    assert [(burst.at_us, burst.length_s, burst.port) for burst in video.bursts] == [
        (0, 2, 5202),
        (15_000_000, 2, 5203),
    ]
    assert (video.host, video.target, video.until_us) == ("n-traffic", "w-traffic", 30_000_000)


def test_a_plan_survives_json_and_is_refused_with_an_unknown_host(plan):
    content = plan_to_json(plan)
    assert plan_from_json(content) == plan
    content["traffic"][0]["target"] = "s-traffic"
    with pytest.raises(InputError, match="the plan has no s-traffic"):
        plan_from_json(content)


def test_commands_have_all_requested_parameters(plan):
    backup, video = plan.traffic
    assert server_command("/ns", backup.bursts[0])[-5:] == [
        "--server", "--one-off", "--json", "--port", "5201",
    ]  # fmt: skip
    fast = client_command("/ns", "10.3.0.5", backup, backup.bursts[0])
    assert fast[:3] == ["nsenter", "--net=/ns", "--"]
    assert fast[-2:] == ["--parallel", "2"]
    assert "--bitrate" not in fast
    at_a_rate = client_command(
        "/ns", "10.3.0.5", replace(backup, rate_bits_per_s=4_000_000), backup.bursts[0]
    )
    assert at_a_rate[-4:] == ["--bitrate", "2000000", "--length", "2500"]  # each; 10 ms of it at once
    datagrams = client_command("/ns", "10.3.0.5", video, video.bursts[1])
    assert datagrams[-3:] == ["--udp", "--bitrate", "1000000"]
    assert datagrams[datagrams.index("--time") + 1] == "2"


def test_virtual_time_and_other_machines_refuse_traffic_in_one_line(plan, tmp_path, capsys):
    given = ["run", "star-outages", "--set", TRAFFIC, "--out", str(tmp_path / "runs")]
    assert main.run([*given, "--on", "simulator"]) == 2
    assert "traffic: needs real packets, which virtual time does not have" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    inventory = tmp_path / "lab.yaml"
    inventory.write_text(INVENTORY)
    backend = SshBackend(load_inventory(inventory), print)
    with pytest.raises(InputError, match="traffic: is not supported on the machines of an inventory"):
        backend.adapted(plan)


def test_a_machine_without_the_generator_is_refused_before_the_start(tmp_path, capsys, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in RUN_TOOLS:
        (programs / tool).symlink_to(Path(shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin") or tool))
    monkeypatch.setenv("PATH", str(programs))
    assert main.run(["run", "star-outages", "--set", TRAFFIC, "--out", str(tmp_path / "runs")]) == 3
    said = capsys.readouterr().err
    assert "needs a program that is not installed: `iperf3` (Debian and Ubuntu: package iperf3)" in said
    assert not (tmp_path / "runs").exists()


def test_a_run_that_ends_early_has_the_traffic_until_then():
    experiment = load_experiment("star-outages", [TRAFFIC])
    known = InteractiveSchedule(experiment, load_topology(experiment.topology))
    for duration_us, names in ((3_000_000, ["backup", "video"]), (1_500_000, ["video"])):
        left = known.until(duration_us)
        assert [entry.name for entry in left.traffic] == names
        assert type(experiment).model_validate(left.to_json()) == left


def test_traffic_counts_in_the_capture_size(plan):
    more = capture_bytes_per_s(plan) - capture_bytes_per_s(plan_of())
    least = (
        2 * 10_000_000 / 8 + 2 * 2 * 1_000_000 / 8
    )  # one link that it fills, and two at 1 Mbit/s; both sides
    assert least < more < 1.2 * least
