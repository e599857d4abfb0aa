"""The run directory: created once, written atomically, with clear errors for missing files."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from experiments.records.json_files import write_json
from experiments.records.rundir import RunDirectory, run_argument
from topologies.errors import InputError

NOW = datetime(2024, 3, 1, 2, 3, 4, tzinfo=UTC)


def test_a_run_is_never_made_twice(tmp_path):
    RunDirectory.create(tmp_path, "x", NOW, "a1b2c3")
    with pytest.raises(FileExistsError):
        RunDirectory.create(tmp_path, "x", NOW, "a1b2c3")


def test_numbers_that_json_does_not_have_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"x": float("nan")})


def test_an_invalid_run_is_bad_input(tmp_path):
    with pytest.raises(InputError, match=r"is not a run directory: it has no run\.json"):
        RunDirectory.open(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json: is not JSON"):
        RunDirectory.open(tmp_path).read_run()
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(InputError, match="should hold a JSON object"):
        RunDirectory.open(tmp_path).read_run()
    with pytest.raises(InputError, match=r"summary\.json: cannot be read: No such file"):
        RunDirectory.open(tmp_path).read_summary()


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("here/runs/one", "one"),
        ("here/runs/sweep/one", "runs/sweep/one"),
        ("here/kept/one", "kept/one"),
        ("here/runs", "runs"),
    ],
)
def test_a_run_below_the_working_directory_has_the_shortest_argument(
    tmp_path: Path, run: str, said: str
) -> None:
    assert run_argument(tmp_path / run, tmp_path / "here") == said


def test_a_run_elsewhere_has_its_absolute_path_as_argument(tmp_path: Path) -> None:
    assert run_argument(tmp_path / "runs" / "one", tmp_path / "here") == str(tmp_path / "runs" / "one")


def test_relative_paths_refer_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_argument(Path("runs/one")) == "one"
    assert run_argument(Path("runs/../kept/one")) == "kept/one"
