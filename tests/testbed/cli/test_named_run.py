"""RUN is a path, a name below runs/, or `latest`; anything else is an error in one line."""

from pathlib import Path

import pytest

from testbed.cli.named_run import named_run
from topologies.errors import InputError


@pytest.fixture
def runs(tmp_path):
    """Create a folder of three runs, and an entry that is no run."""
    for name in ("20260101T000000Z-a-000001", "20260103T000000Z-b-000002", "20260102T000000Z-c-000003"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    (tmp_path / "20269999T000000Z-no-run").mkdir()
    return tmp_path


def test_latest_is_the_run_that_started_last(runs):
    assert named_run("latest", runs).name == "20260103T000000Z-b-000002"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope", "there is no such run; the latest is 20260103T000000Z-b-000002"),
        ("20260103T000000Z-b-000003", "did you mean 20260103T000000Z-b-000002"),
        ("20260101T000000Z-a-00000", "did you mean 20260101T000000Z-a-000001"),
        ("20260101T000000Z-a-000007", "did you mean 20260101T000000Z-a-000001"),
        ("c-000003", "did you mean 20260102T000000Z-c-000003"),
        ("202601", "3 contain it in their names, the latest is 20260103T000000Z-b-000002"),
        ("https://example.org/run.tar.zst", "only captures are read from URLs: download the run first"),
        ("s3://bucket/run", "only captures are read from URLs: download the run first"),
        ("20269999T000000Z-no-run", "is not a run directory: it has no run.json"),
    ],
)
def test_directories_that_are_no_runs_are_refused(runs, name, said):
    with pytest.raises(InputError, match=said):
        named_run(name, runs)


def test_a_mistyped_path_below_runs_gets_a_suggestion(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("20260101T000000Z-a-000001", "20260103T000000Z-b-000002"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{}")
    with pytest.raises(InputError, match="did you mean 20260101T000000Z-a-000001"):
        named_run("runs/20260101T000000Z-a-00000/", Path("runs"))


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "below it: there are none yet$"),
        (2, "below it: points/1-r0, points/2-r0$"),
        (7, "below it: points/1-r0, .*, points/5-r0 and 2 more$"),
    ],
)
def test_a_sweep_in_place_of_a_run_is_refused_with_its_runs(tmp_path, count, said):
    (tmp_path / "sweep.json").write_text("{}")
    for number in range(1, count + 1):
        (tmp_path / f"points/{number}-r0").mkdir(parents=True)
        (tmp_path / f"points/{number}-r0/run.json").write_text("{}")
    with pytest.raises(InputError, match=f"is a sweep: name one of its runs, {said}"):
        named_run(str(tmp_path))


def test_without_any_run_the_error_names_the_remedy(tmp_path):
    with pytest.raises(InputError, match="make one with `cutset run`"):
        named_run("latest", tmp_path)
