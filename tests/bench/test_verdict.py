"""`make bench` fails if what a row asks for is missed, and only then."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.bench.__main__ import main


def bench(monkeypatch: pytest.MonkeyPatch, folder: Path, *rows: dict[str, Any]) -> int:
    """Return the exit code if a subject measures these rows."""
    subject = ModuleType("tests.bench.hosts")
    monkeypatch.setattr(subject, "measure", lambda: list(rows), raising=False)
    monkeypatch.setitem(sys.modules, "tests.bench.hosts", subject)
    monkeypatch.setattr(sys, "argv", ["bench", "hosts", "--json", str(folder / "bench.json")])
    return main()


def test_missed_targets_are_named_and_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = {"name": "bring-up", "value": 11.0, "asked": 10.0, "unit": "s", "missed": True}
    noisy = {"name": "packets", "value": 1.0, "asked": 2.0, "unit": "MB/s"}
    assert bench(monkeypatch, tmp_path, slow, noisy) == 1
    assert "missed: hosts: bring-up\n" in capsys.readouterr().out
    assert bench(monkeypatch, tmp_path, slow | {"value": 9.0, "missed": False}, noisy) == 0
    assert len(json.loads((tmp_path / "bench.json").read_text())["rows"]) == 2
