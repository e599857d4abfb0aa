"""RUN is a path, a name below runs/, or `latest`; what is none of these is said in one line."""

from pathlib import Path

import pytest

from testbed.cli.named_run import named_run
from topologies.errors import InputError


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder of three runs, and one that is none."""
    for name in ("20260101T000000Z-a-000001", "20260103T000000Z-b-000002", "20260102T000000Z-c-000003"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    (tmp_path / "20269999T000000Z-no-run").mkdir()
    return tmp_path


def test_a_path_names_its_run(runs: Path) -> None:
    path = runs / "20260101T000000Z-a-000001"
    assert named_run(str(path), runs).path == path


def test_a_name_is_looked_for_below_runs(runs: Path) -> None:
    assert named_run("20260102T000000Z-c-000003", runs).path == runs / "20260102T000000Z-c-000003"


def test_latest_is_the_one_that_started_last(runs: Path) -> None:
    assert named_run("latest", runs).name == "20260103T000000Z-b-000002"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope", "there is no such run"),
        ("20260103T000000Z-b-000003", "did you mean 20260103T000000Z-b-000002"),
        ("20269999T000000Z-no-run", "is no run directory: it has no run.json"),
    ],
)
def test_what_is_no_run_is_refused(runs: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        named_run(name, runs)


def test_without_any_run_it_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`cutset run` makes one"):
        named_run("latest", tmp_path)
