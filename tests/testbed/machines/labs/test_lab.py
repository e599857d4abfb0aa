"""The lab: its machines are separate machines, and all changes to them are observed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.sandbox.outside import PROJECT
from tests.testbed.leftovers import assert_nothing_left, host_interfaces, namespaces_of, wait_until
from tests.testbed.machines.lab import Lab

pytestmark = [pytest.mark.network, pytest.mark.machines]


def test_a_machine_has_neither_the_project_nor_the_keys_of_ours(pair: Lab) -> None:
    for folder in (str(PROJECT), "/root/.ssh", "/tmp"):  # the project may be below one of the others
        assert pair["h0"].run(["find", folder, "-type", "f"]).stdout == ""


def test_every_written_file_is_listed(pair: Lab) -> None:
    machine = pair["h0"]
    before = set(machine.changed_files())
    kept = {name: machine.path(name).read_text() for name in ("/etc/hosts", "/etc/hostname")}
    made = ["/etc/new/file", "/var/tmp/own", "/dev/shm/shared", "/run/pid"]
    for name in made:
        machine.run(["install", "-D", "/dev/null", name])
    machine.run(["sh", "-c", "echo more >> /etc/hosts; rm /etc/hostname; chmod 600 /etc/services"])
    changed = {*made, "/etc/new", "/etc/hosts", "/etc/hostname", "/etc/services"}
    assert set(machine.changed_files()) - before == changed
    machine.run(["rm", "-r", "/etc/new", *made[1:]])
    assert set(machine.changed_files()) - before == {"/etc/hosts", "/etc/hostname", "/etc/services"}
    for name, content in kept.items():  # for the tests after this one
        machine.path(name).write_text(content)
    machine.run(["chmod", "644", "/etc/services"])


def test_changes_of_a_machines_state_are_reported(pair: Lab) -> None:
    machine = pair["h0"]
    machine.wait_until_alone()
    before = machine.standing()
    assert machine.standing().differences(before) == []
    machine.start(["sleep", "987"])
    machine.run(["ip", "link", "add", "left0", "type", "bridge"])
    machine.run(["ip", "route", "add", "10.9.0.0/16", "dev", "exp0"])
    try:
        told = "\n".join(machine.standing().differences(before))
        assert "more processes: sleep 987" in told
        assert '"ifname": "left0"' in told
        assert '"dst": "10.9.0.0/16"' in told
    finally:
        machine.run(["ip", "link", "del", "left0"])
        machine.run(["ip", "route", "del", "10.9.0.0/16"])
        machine.kill("sleep 987")
    wait_until(lambda: machine.standing().differences(before) == [], "the machine as it was")


def test_a_lab_that_is_killed_leaves_no_process_and_no_interface(lab_works: None, tmp_path: Path) -> None:
    interfaces = host_interfaces()
    command = [sys.executable, "-m", "tests.testbed.machines.lab", "--machines", "2", "--", "sleep", "989"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(PROJECT)}
    lab = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=PROJECT)
    with lab:
        assert lab.stderr is not None
        assert lab.stderr.readline().startswith("2 machines; ")
        (place,) = tmp_path.iterdir()
        namespaces = namespaces_of(place.name)
        assert namespaces
        lab.kill()
    assert_nothing_left(place.name, namespaces, interfaces)
