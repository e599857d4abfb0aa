"""A crash at any step leaves a usable history in which each run is complete or absent."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.history import History
from tests.analysis.history.records import make_record

STEPS_MAX = 60


class Killed(BaseException):
    """Simulates kill -9: no code catches it."""


@pytest.fixture
def killed_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], None]:
    """Allow this many disk writes, then fail all further ones; None allows all."""
    left: list[int | None] = [None]

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            if left[0] is not None:
                if left[0] == 0:
                    raise Killed
                left[0] -= 1
            return real(*arguments, **named)

        return step

    monkeypatch.setattr(os, "fsync", wrap(os.fsync))
    for name in ("replace", "unlink", "mkdir"):
        monkeypatch.setattr(Path, name, wrap(getattr(Path, name)))

    def arm(steps: int | None) -> None:
        left[0] = steps

    return arm


def contents(history: History) -> list[list[dict[str, Any]]]:
    tables = history.runs(), history.metrics(), history.expectations()
    return [sorted(table.to_pylist(), key=str) for table in tables]


def crash_everywhere(
    tmp_path: Path, arm: Callable[[int | None], None], act: Callable[[History], Any]
) -> list[History]:
    """Return histories with two runs, one per crash point of `act`; the last one has no crash."""
    before, histories = _history_with(tmp_path / "before", "a", "b"), []
    for steps in range(STEPS_MAX):
        history = History(Path(shutil.copytree(before.folder, tmp_path / str(steps))))
        arm(steps)
        try:
            act(history)
        except Killed:
            arm(None)
            histories.append(history)
        else:
            arm(None)
            return [*histories, history]
    raise AssertionError("it takes more steps than one would think")


@pytest.mark.slow
def test_a_crash_while_appending_leaves_the_run_complete_or_absent(
    tmp_path: Path, killed_after: Callable[[int | None], None]
) -> None:
    histories = crash_everywhere(tmp_path, killed_after, lambda history: history.append(make_record("c")))
    assert len(histories) > 6
    whole = contents(histories[-1])
    without = contents(_history_with(tmp_path / "without", "a", "b"))
    assert {str(contents(history)) for history in histories} == {str(whole), str(without)}
    for history in histories:
        history.append(make_record("c"))
        assert contents(history) == whole
        assert history.problems == []


def _history_with(folder: Path, *runs: str) -> History:
    history = History(folder)
    for run in runs:
        history.append(make_record(run))
    return history
