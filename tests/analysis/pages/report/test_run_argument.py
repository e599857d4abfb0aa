"""How a shown command names its run."""

from pathlib import Path

import pytest

from experiments.records.rundir import run_argument


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("here/runs/one", "one"),
        ("here/runs/sweep/one", "runs/sweep/one"),
        ("here/kept/one", "kept/one"),
        ("here/runs", "runs"),
    ],
)
def test_below_the_working_directory_it_is_as_short_as_it_works(tmp_path: Path, run: str, said: str) -> None:
    assert run_argument(tmp_path / run, tmp_path / "here") == said


def test_elsewhere_it_is_the_absolute_path(tmp_path: Path) -> None:
    assert run_argument(tmp_path / "runs" / "one", tmp_path / "here") == str(tmp_path / "runs" / "one")


def test_a_path_as_it_was_given_is_seen_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_argument(Path("runs/one")) == "one"
    assert run_argument(Path("runs/../kept/one")) == "kept/one"
