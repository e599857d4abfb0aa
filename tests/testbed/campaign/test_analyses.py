"""Analyses of existing runs."""

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.records.run_record import RunRecord, write_record
from experiments.records.rundir import RunDirectory
from testbed.campaign import analyses, exit_codes
from testbed.campaign.analyses import analyze_all
from testbed.campaign.in_use import sole_writer
from testbed.cli import main
from tests.bench.traffic import write_run
from tests.run_json import SMALL


def test_an_interrupt_that_python_drops_ends_the_work_at_its_next_step(tmp_path, monkeypatch):
    run = RunDirectory(tmp_path / "run")
    run.make()
    done = []

    def work(_: RunDirectory, *, progress: Callable[[str], None], **__: Any) -> dict[str, Any]:
        with contextlib.suppress(KeyboardInterrupt):  # as a callback of a weak reference
            signal.raise_signal(signal.SIGINT)
        done.append("one step")
        progress("another step")
        done.append("another step")
        return {}

    for check in ("check_measured", "check_captures"):
        monkeypatch.setattr(analyses, check, lambda _: None)
    monkeypatch.setattr(analyses, "run_analysis", work)
    with pytest.raises(KeyboardInterrupt):
        analyze_all([run], None)
    assert done == ["one step"]


def made(folder: Path, name: str) -> RunDirectory:
    """Return a run without analysis."""
    write_run(folder / name, 20, regions=2)
    return RunDirectory(folder / name)


@pytest.mark.slow
def test_each_of_several_runs_is_analysed_whatever_happens_to_the_others(tmp_path, capsys):
    whole, other = made(tmp_path, "a"), made(tmp_path, "b")
    ended_early = RunDirectory(tmp_path / "early")
    ended_early.make()
    write_record(ended_early.run_json, RunRecord(SMALL))
    with sole_writer(other.path):
        code = main.run(["analyze", *(str(run.path) for run in (other, whole, ended_early, whole))])
    out, told = capsys.readouterr()
    assert code == exit_codes.MACHINE
    assert whole.summary_json.is_file()
    assert str(other.path) in told
    assert not other.summary_json.exists()
    code = main.run(["analyze", *(str(run.path) for run in (whole, ended_early, other, whole))])
    out, told = capsys.readouterr()
    assert code == exit_codes.BAD_INPUT
    assert f"cutset: {ended_early.path}: holds nothing to analyse" in told
    assert told.rstrip().endswith("of 3 passed")
    for run in (whole, other):
        assert run.summary_json.is_file()
        assert str(run.report_html) in out


def test_a_missing_run_is_reported_before_any_is_analysed(tmp_path, capsys):
    run = made(tmp_path, "a")
    assert main.run(["analyze", str(run.path), str(tmp_path / "none")]) == exit_codes.BAD_INPUT
    assert "none" in capsys.readouterr().err
    assert not run.summary_json.exists()
