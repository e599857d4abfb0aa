"""Records of sweeps and nights: files are read, and damaged ones are refused in one line."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from experiments.campaigns.campaign import CampaignRecord, FailureKind, RunHeadline, RunState
from experiments.campaigns.nights import NightDirectory
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.records.run_record import Outcome
from experiments.suite import read_suite
from testbed.campaign.nights.night_options import HISTORY, NightOptions
from testbed.campaign.nights.night_text import show_night
from testbed.campaign.sweeps.sweep_outcome import show_sweep
from testbed.campaign.texts.campaign_text import run_line, runs_text
from testbed.nightly.hooks import message
from testbed.nightly.junit import junit_xml
from tests.changed_json import WRONG, broken
from topologies.errors import InputError

WRITTEN = Path(__file__).parent / "written"


def sweep(folder: Path, content: str) -> CampaignRecord[Any]:
    (folder / "sweep.json").write_text(content)
    return SweepDirectory(folder).read()


def night(folder: Path, content: str) -> CampaignRecord[Any]:
    (folder / "night.json").write_text(content)
    return NightDirectory(folder).read()


def shown(folder: Path, record: Any) -> None:
    """Return everything that is printed about a record."""
    for run in record.runs:
        run_line(run, 1, len(record.runs), 1.0)
    runs_text(record)
    if hasattr(record, "sweep"):
        show_sweep(SweepDirectory(folder), record, ("tiny", ()))
        return
    directory = NightDirectory(folder)
    usual = NightOptions(jobs=1, out=folder, history=HISTORY, site=None, hooks=(), hooks_always=())
    message(directory, record, None)
    junit_xml(directory, record)
    if not any(run.failure for run in record.runs):  # one that failed is replayed: its suite must have it
        show_night(directory, record, read_suite("quick"), None, usual)


def test_a_written_sweep_is_read(tmp_path: Path) -> None:
    content = (WRITTEN / "sweep.json").read_text()
    record = sweep(tmp_path, content)
    before = json.loads(content)
    assert (record.backend, record.links, record.outcome) == ("simulator", "auto", Outcome.INTERRUPTED)
    assert record.digest == before["digest"]
    done, _, crashed, pending = record.runs
    assert [run.state for run in record.runs] == ["done", "done", "failed", "pending"]
    assert (done.name, done.run, done.seed) == ("1-rate-100-s-r0", "points/1-rate-100-s-r0", 1)
    assert (done.values, done.verdict) == ({"workload.rate": "100/s"}, "failed")
    assert asdict(done.headline) == before["runs"][0]["headline"]
    assert (crashed.problem, crashed.duration_s, crashed.repetition) == ("the sandbox ended", 1.25, 1)
    assert (pending.run, pending.headline) == (None, RunHeadline())
    SweepDirectory(tmp_path).write(record)
    assert SweepDirectory(tmp_path).read() == record


def test_a_written_night_is_read(tmp_path: Path) -> None:
    record = night(tmp_path, (WRITTEN / "night.json").read_text())
    assert (record.night, record.suite, record.spent_s) == ("2026-11-21", "small", 5.754)
    assert record.outcome is None
    never, long, good, torn, *later = record.runs
    assert (never.name, never.failure, never.allow_failure) == ("never r0", FailureKind.EXPECTATION, True)
    assert (long.state, long.run) == (RunState.SKIPPED, None)
    assert (good.tries, good.torn) == (2, ("20261123T054440Z-tiny-0e1c2d.torn",))
    assert (torn.name, torn.state, torn.backend) == ("good r1", RunState.RUNNING, "simulator")
    assert [run.name for run in later] == ["good r2", "swept r0"]
    assert record.pending == [torn, *later]
    NightDirectory(tmp_path).write(record)
    assert NightDirectory(tmp_path).read() == record


@pytest.mark.parametrize("read", [sweep, night])
@pytest.mark.parametrize(
    "content", ["[]", "{", "{}", '{"runs": []}', '{"schema": 3}', '{"schema": 1}', "\xff"]
)
def test_an_invalid_record_is_bad_input(
    tmp_path: Path, read: Callable[[Path, str], object], content: str
) -> None:
    with pytest.raises(InputError, match=r"(sweep|night)\.json: "):
        read(tmp_path, content)


@pytest.mark.parametrize("read", [sweep, night])
def test_runs_of_one_name_are_refused(
    tmp_path: Path, read: Callable[[Path, str], CampaignRecord[Any]]
) -> None:
    content = json.loads((WRITTEN / f"{read.__name__}.json").read_text())
    runs = content["runs"]
    runs[1] = runs[0]
    with pytest.raises(InputError, match=r"runs\.0\.name: several runs are called "):
        read(tmp_path, json.dumps(content))


@pytest.mark.slow
@pytest.mark.parametrize("read", [sweep, night])
def test_every_changed_record_is_read_or_refused_in_one_line(
    tmp_path: Path,
    read: Callable[[Path, str], CampaignRecord[Any]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, refused = f"{read.__name__}.json", []

    def look(content: dict[str, Any]) -> None:
        try:
            shown(tmp_path, read(tmp_path, json.dumps(content)))
        except InputError as error:
            refused.append(str(error))

    content = json.loads((WRITTEN / name).read_text())
    assert broken(content, WRONG, look, skip=("experiment",), every=7) == []
    assert len(refused) > 50
    for said in refused:
        assert said.startswith(f"{tmp_path / name}: ")
        assert said.isprintable()
    assert "\x1b[2J" not in capsys.readouterr().out
