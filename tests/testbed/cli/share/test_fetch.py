"""`cutset fetch` before it contacts any machine; see also `tests.testbed.machines.shipping.test_fetching`."""

import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli.main import run as cutset
from tests.run_json import set_run


@pytest.fixture
def run(tmp_path):
    """Return a run that was on a machine; its run.json names an inventory, which is not trusted."""
    run = RunDirectory(tmp_path / "20260101T000000Z-one-aaaaaa")
    run.make()
    (tmp_path / "lab.yaml").write_text("inventory: lab\n")
    set_run(
        run,
        machines=[{"name": "h0", "hosts": [], "zero_ns": None}],
        inventory={"file": str(tmp_path / "lab.yaml"), "code": ""},
    )
    return run


def test_a_run_whose_files_are_all_here_needs_no_machine(run, tmp_path, capsys):
    set_run(run, shipped=[{"machine": "h0", "complete": True}])
    assert cutset(["fetch", str(run.path), "--on", str(tmp_path / "none.yaml")]) == 0
    assert capsys.readouterr().out == f"All files of {run.name} are here: cutset analyze {run.path}\n"


@pytest.mark.parametrize("shipped", [[], [{"machine": "h0", "complete": False}]], ids=["nothing", "a part"])
def test_the_user_names_the_inventory_and_not_the_run(run, tmp_path, capsys, shipped):
    set_run(run, shipped=shipped)
    assert cutset(["fetch", str(run.path)]) == 2
    assert "Missing option '--on'" in capsys.readouterr().err
    assert cutset(["fetch", str(run.path), "--on", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err
