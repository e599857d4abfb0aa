"""docs/new-system.md: its two files, in an empty folder, are a system that runs."""

import json
import re
from pathlib import Path

import pytest

from node import systems
from testbed.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "new-system.md"
LINES_MAX = 150


def block(language: str) -> str:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return found[0]


@pytest.mark.slow
def test_the_system_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(systems.MODULES_VARIABLE)
    assert len(block("python").splitlines()) <= LINES_MAX
    Path("echo_system.py").write_text(block("python"))
    Path("echo.yaml").write_text(block("yaml"))
    monkeypatch.setenv(systems.MODULES_VARIABLE, "")
    assert main.run(["--system-module", "echo_system.py", "run", "echo.yaml", "--on", "simulator"]) == 0
    [run] = Path("runs").glob("*-echo-*")
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["verdict"], summary["events"]["published"]) == ("passed", 3200)
    assert summary["recovery"]["cut"]["affected_pairs"] > 0
