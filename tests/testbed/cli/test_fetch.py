"""`cutset fetch` before it asks any machine; for more see `tests.testbed.machines.shipping.test_fetching`."""

from pathlib import Path

import pytest

from experiments.rundir import RunDirectory
from testbed.cli.main import run as cutset
from tests.run_json import set_run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Was on a machine, and its inventory is gone."""
    run = RunDirectory(tmp_path / "20260101T000000Z-one-aaaaaa")
    run.make()
    set_run(
        run,
        machines=[{"name": "h0", "hosts": [], "zero_ns": None}],
        inventory={"file": str(tmp_path / "lab.yaml"), "code": ""},
    )
    return run


def test_a_run_that_is_all_here_needs_no_inventory(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    set_run(run, shipped=[{"machine": "h0", "complete": True}])
    assert cutset(["fetch", str(run.path)]) == 0
    assert capsys.readouterr().out == f"All files of {run.name} are here: cutset analyze {run.path}\n"


@pytest.mark.parametrize("shipped", [[], [{"machine": "h0", "complete": False}]], ids=["nothing", "a part"])
def test_a_run_that_is_not_says_how_to_name_another_inventory(
    run: RunDirectory, capsys: pytest.CaptureFixture[str], shipped: list[dict[str, object]]
) -> None:
    set_run(run, shipped=shipped)
    assert cutset(["fetch", str(run.path)]) == 2
    lab = run.path.parent / "lab.yaml"
    problem = f"{lab}, with which it was started, is gone: name its machines' inventory with --on"
    assert capsys.readouterr().err == f"cutset: {run.path}: {problem}\n"
