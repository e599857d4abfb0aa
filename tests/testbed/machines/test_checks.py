"""Machines are examined, given the code and cleaned, all at once, through real SSH servers."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.records.rundir import RUNS, RunDirectory
from testbed.errors import TestbedError
from testbed.findings import FindingState
from testbed.machines.archive import Archive, pack
from testbed.machines.checks import ExaminedMachine, examine
from testbed.machines.cleanup import CleanupResult, clean
from testbed.machines.inventory import load_inventory
from testbed.machines.software.deploy import code_folder, deploy
from testbed.machines.ssh.connection_pool import connected
from testbed.machines.ssh.ssh import SshConnection
from tests.run_json import set_run
from tests.testbed.machines.lab import Lab
from tests.testbed.machines.labs.machine import LabMachine
from tests.testbed.machines.labs.shortages import limit_folder, occupied_udp_port
from tests.testbed.runner.live import CUTSET

pytestmark = [pytest.mark.network, pytest.mark.machines, pytest.mark.usefixtures("own_home")]


@pytest.fixture(scope="module")
def archive() -> Archive:
    """Return a small archive in place of the code."""
    return small_archive("A = 1\n")


def small_archive(text: str) -> Archive:
    return Archive.from_content(pack({"node/__init__.py": text.encode()}))


@contextmanager
def logged_in(lab: Lab, inventory: Path | None = None) -> Iterator[list[SshConnection | TestbedError]]:
    """Yield connections to all machines, which stay in the lab's network."""
    context = connected(load_inventory(inventory or lab.inventory).machines)
    connections = lab.on_controller(context.__enter__)
    try:
        yield connections
    finally:
        context.__exit__(None, None, None)


def examined(lab: Lab, archive: Archive, inventory: Path | None = None) -> dict[str, ExaminedMachine]:
    with logged_in(lab, inventory) as connections:
        loaded = load_inventory(inventory or lab.inventory)
        return {each.machine.name: each for each in examine(loaded, connections, archive)}


def here(connections: Sequence[SshConnection | TestbedError]) -> list[SshConnection]:
    return [connection for connection in connections if isinstance(connection, SshConnection)]


@contextmanager
def python_that_says(machine: LabMachine, what: str) -> Iterator[None]:
    """Replace a machine's python3 by a program that prints this."""
    name = "/usr/local/bin/python3"
    link = [machine.path(name).readlink()] if machine.path(name).is_symlink() else []
    machine.run(["install", "-m", "755", "/dev/stdin", name], input=f"#!/bin/sh\necho '{what}'\n")
    try:
        yield
    finally:
        machine.run(["rm", name])
        for target in link:
            machine.run(["ln", "-s", str(target), name])


def only_problem(each: ExaminedMachine) -> str:
    (found,) = each.missing
    assert found.remedy
    return found.problem


# Checks.


def test_usable_machines_report_their_properties(pair: Lab, archive: Archive) -> None:
    before = {name: machine.changed_files() for name, machine in pair.machines.items()}
    begun_ns = time.monotonic_ns()
    found = examined(pair, archive)
    took_ns = time.monotonic_ns() - begun_ns
    for name, each in found.items():
        cells = {finding.subject: finding.detail for finding in each.findings}
        assert each.missing == (), name
        assert cells["network"] == f"{pair[name].experiment} exp0 1600"
        assert cells["peers"].startswith("1/1 ")
        assert each.facts is not None
        assert each.facts.processors > 0
        assert each.facts.folder.free_bytes > 0
        assert each.clock is not None
        assert abs(each.clock.offset_ns) <= each.clock.error_ns  # it is the same clock
        assert 0 < each.clock.error_ns < took_ns
    assert {name: machine.changed_files() for name, machine in pair.machines.items()} == before


def test_a_wrong_address_is_reported_with_the_existing_ones(pair: Lab, archive: Archive) -> None:
    inventory = pair.write_inventory("wrong.yaml", machines={"h1": {"experiment": "10.10.1.77"}})
    found = examined(pair, archive, inventory)
    assert "10.10.1.77 is on none of its interfaces" in only_problem(found["h1"])
    assert pair["h1"].experiment in only_problem(found["h1"])
    assert "no answer in the experiment network from h1 (10.10.1.77)" in only_problem(found["h0"])


def test_a_tunnel_of_the_kernels_own_leaves_the_port_to_others(pair: Lab, archive: Archive) -> None:
    tunnel = ["type", "vxlan", "id", "9", "local", "10.10.1.10", "remote", "10.10.1.11", "dstport", "4789"]
    pair["h0"].run(["ip", "link", "add", "name", "other", *tunnel])
    try:
        pair["h0"].run(["ip", "link", "set", "other", "up"])
        assert examined(pair, archive)["h0"].missing == ()
    finally:
        pair["h0"].run(["ip", "link", "delete", "other"])


def test_a_network_with_a_smaller_mtu_than_its_interfaces_is_detected(pair: Lab, archive: Archive) -> None:
    pair["h1"].run(["ip", "link", "set", "exp0", "mtu", "1400"])
    try:
        found = examined(pair, archive)
    finally:
        pair["h1"].run(["ip", "link", "set", "exp0", "mtu", "1600"])
    assert "no answer to packets of 1550 bytes from h1" in only_problem(found["h0"])
    (small,) = [
        each for each in found["h1"].findings if each.state is FindingState.NOTE and each.subject == "network"
    ]
    assert "links between machines get 1350 at most" in small.problem


def test_a_folder_that_others_could_replace_is_reported(pair: Lab, archive: Archive) -> None:
    pair["h0"].run(["install", "-d", "-o", "65534", "/var/tmp/theirs"])
    inventory = pair.write_inventory("theirs.yaml", folder="/var/tmp/theirs/cutset")
    try:
        assert "/var/tmp/theirs belongs to another user" in only_problem(
            examined(pair, archive, inventory)["h0"]
        )
    finally:
        pair["h0"].run(["rmdir", "/var/tmp/theirs"])


def test_a_machine_with_invalid_answers_does_not_affect_others(pair: Lab, archive: Archive) -> None:
    with python_that_says(pair["h0"], '{"ended": 1}'):
        found = examined(pair, archive)
        with logged_in(pair) as connections:
            wrong, right = clean(here(connections), Path("runs"), archive)
    (finding,) = found["h0"].missing
    assert finding.problem.startswith("its answer is invalid: ")
    assert found["h1"].missing == ()
    assert isinstance(wrong, TestbedError)
    assert str(wrong).startswith("h0: its answer is invalid: ")
    assert isinstance(right, CleanupResult)


# Our code on the machines.


def test_code_is_sent_once_and_stays_below_the_folder(pair: Lab) -> None:
    archive = small_archive("sent = 1\n")
    before = {name: set(machine.changed_files()) for name, machine in pair.machines.items()}
    with logged_in(pair) as connections:
        assert deploy(here(connections), archive) == [True, True]
        assert deploy(here(connections), archive) == [False, False]
    for connection, (name, machine) in zip(here(connections), pair.machines.items(), strict=True):
        folder = code_folder(connection.machine, archive)
        assert machine.path(f"{folder}/node/__init__.py").read_text() == "sent = 1\n"
        new = set(machine.changed_files()) - before[name]
        assert all(f"{path}/".startswith(f"{pair[name].folder}/") for path in new)
    found = examined(pair, archive)["h0"]
    assert {finding.detail for finding in found.findings if finding.subject == "code"} == {"this"}


def test_a_machine_without_room_reports_it_and_keeps_no_part(lab_works: None) -> None:
    archive = small_archive("#" * (4 << 20))
    with Lab(1) as lab:
        limit_folder(lab["h0"], 1 << 20)
        with logged_in(lab) as connections, pytest.raises(TestbedError, match=r"h0: .*No space left"):
            deploy(here(connections), archive)
        assert [path.name for path in lab["h0"].path(lab["h0"].folder).rglob("*")] == ["code"]


@pytest.mark.skipif(
    shutil.which("sudo") is None, reason="the lab's machines have the programs of this one: no sudo"
)
def test_a_user_with_sudo_can_take_part_like_root(lab_works: None) -> None:
    archive = small_archive("by_sudo = 1\n")
    with Lab(1, user="someone", sudo=True) as lab:
        assert examined(lab, archive)["h0"].missing == ()
        with logged_in(lab) as connections:
            assert deploy(here(connections), archive) == [True]
            assert deploy(here(connections), archive) == [False]


def test_a_user_without_sudo_is_refused_with_the_remedy(lab_works: None, archive: Archive) -> None:
    with Lab(1, user="someone") as lab:
        problem = examined(lab, archive)["h0"].missing[0].problem
    assert problem.startswith("runs need root")
    assert "NOPASSWD" in problem


# The command.


def hosts(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `cutset hosts`."""
    return lab.run([*CUTSET, "hosts", lab.inventory, *arguments])


def test_an_unusable_machine_gives_exit_code_3_and_a_remedy(pair: Lab) -> None:
    with occupied_udp_port(pair["h1"], 4789):
        done = hosts(pair)
    assert done.returncode == 3
    assert re.search(r"✗ +h1 ", done.stdout)
    assert re.search(
        r"✗ h1: UDP port 4789 is used by python3\S* \(process \d+\)\n  -> stop it, or", done.stdout
    )
    assert done.stderr == "cutset: not usable: h1\n"


def test_runs_left_on_machines_are_listed_and_those_whose_files_are_here_are_removed(
    pair: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched, other = "20260101T000000Z-one-aaaaaa", "20260101T000000Z-two-bbbbbb"
    for name in (fetched, other):
        pair["h0"].run(["mkdir", "-p", f"{pair['h0'].folder}/runs/{name}"])
    run = RunDirectory(tmp_path / RUNS / fetched)
    run.make()
    set_run(run, shipped=[{"machine": "h0", "complete": True}])
    monkeypatch.chdir(tmp_path)
    before = hosts(pair)
    assert before.returncode == 0, before.stderr
    assert re.search(r"h1 .* 10\.10\.1\.11 exp0 1600 +1/1 [\d.]+ ms", before.stdout)
    assert "Every machine is usable for runs." in before.stdout
    assert re.search(
        r"h0: without a controller: .*one.*two.*\n  -> `cutset fetch RUN --on INVENTORY`", before.stdout
    )
    done = hosts(pair, "--clean")
    assert done.returncode == 0, done.stderr
    assert f"h0: removed {fetched}, because its files are here" in done.stdout
    assert (
        f"h0: kept {other} (0 MB): its files are not all here -> cutset fetch {other} --on INVENTORY"
        in done.stdout
    )
    assert "h1" in done.stdout
    left = pair["h0"].run(["ls", f"{pair['h0'].folder}/runs"]).stdout.split()
    assert (other in left, fetched in left) == (True, False)
    pair["h0"].run(["rmdir", f"{pair['h0'].folder}/runs/{other}"])
