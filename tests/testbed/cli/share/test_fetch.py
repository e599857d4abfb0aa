"""`cutset fetch` before it asks any machine; for more see `tests.testbed.machines.shipping.test_fetching`."""

import socket

import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli.main import run as cutset
from testbed.machines.started_runs import inventory_of, record_started
from tests.run_json import set_run

INVENTORY = """\
inventory: lab
user: root
machines: [{{name: h0, control: "127.0.0.1", port: {port}, experiment: 10.10.1.10, host_key: "SHA256:{key}"}}]
"""


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def run(tmp_path):
    """Was on a machine, and its inventory is gone."""
    run = RunDirectory(tmp_path / "20260101T000000Z-one-aaaaaa")
    run.make()
    set_run(
        run,
        machines=[{"name": "h0", "hosts": [], "zero_ns": None}],
        inventory={"file": str(tmp_path / "lab.yaml"), "code": ""},
    )
    return run


def test_a_run_that_is_all_here_needs_no_inventory(run, capsys):
    set_run(run, shipped=[{"machine": "h0", "complete": True}])
    assert cutset(["fetch", str(run.path)]) == 0
    assert capsys.readouterr().out == f"All files of {run.name} are here: cutset analyze {run.path}\n"


@pytest.mark.parametrize("shipped", [[], [{"machine": "h0", "complete": False}]], ids=["nothing", "a part"])
def test_a_run_that_is_not_says_how_to_name_another_inventory(run, capsys, shipped):
    set_run(run, shipped=shipped)
    record_started(run, run.path.parent / "lab.yaml")
    assert cutset(["fetch", str(run.path)]) == 2
    lab = run.path.parent / "lab.yaml"
    problem = f"its inventory {lab} no longer exists: set one with --on"
    assert capsys.readouterr().err == f"cutset: {run.path}: {problem}\n"


@pytest.fixture
def listener():
    """Run an SSH server that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


def test_a_run_of_others_names_no_machine_to_log_in_to(run, listener, capsys):
    """Its run.json names an inventory that it brings along, with a host key that fits."""
    brought = run.captures / "lab.yaml"
    brought.write_text(INVENTORY.format(port=listener.getsockname()[1], key="A" * 43))
    set_run(run, inventory={"file": str(brought), "code": ""})
    assert cutset(["fetch", str(run.path)]) == 2
    problem = "was not started from here by this user: set its inventory with --on"
    assert capsys.readouterr().err == f"cutset: {run.path}: {problem}\n"
    with pytest.raises(TimeoutError):
        listener.accept()


def test_a_run_that_was_started_here_is_fetched_with_its_inventory_until_all_is_here(run, tmp_path, capsys):
    inventory = tmp_path / "mine.yaml"
    inventory.write_text("inventory: mine\n")
    record_started(run, inventory)
    assert cutset(["fetch", str(run.path)]) == 2
    assert str(inventory) in capsys.readouterr().err, "it is read, and its fault said"
    set_run(run, shipped=[{"machine": "h0", "complete": True}])
    assert cutset(["fetch", str(run.path)]) == 0
    assert inventory_of(run) is None


def test_a_run_starts_even_if_nothing_can_be_recorded(run, tmp_path):
    (tmp_path / "state").write_text("no folder")
    record_started(run, tmp_path / "mine.yaml")
    assert inventory_of(run) is None
