"""Analyses of runs that were made before."""

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.rundir import RunDirectory
from testbed.campaign import analyses
from testbed.campaign.analyses import Workers, analyze


def test_an_interrupt_that_python_drops_ends_the_work_at_its_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        analyze(run, Workers(None, None))
    assert done == ["one step"]
