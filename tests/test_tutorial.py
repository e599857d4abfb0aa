"""docs/tutorial.md: its files and its commands, in an empty folder and in the order of the page."""

import re
import shlex
from pathlib import Path

import pytest

from testbed.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
INVALID = 1  # also of a run on a machine that is too busy


def files() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = re.findall(
        r"^`([\w.]+)`:\n\n```yaml\n(.*?)```", PAGE.read_text(), re.M | re.S
    )
    return found


def commands() -> list[list[str]]:
    return [shlex.split(line)[1:] for line in re.findall(r"^\$ (cutset .*)$", PAGE.read_text(), re.M)]


@pytest.mark.network
@pytest.mark.slow
def test_every_command_of_the_tutorial_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in files():
        Path(name).write_text(text.replace("200/s", "100/s").replace("15s", "12s"))  # it takes half as long
    assert len(files()) == 2
    assert len(commands()) >= 10
    for words in commands():
        code = main.run(words)
        said = capsys.readouterr()
        is_real_run = words[0] == "run" and "simulator" not in words
        assert code == 0 or (is_real_run and code == INVALID and "invalid" in said.out), (words, said)
    assert {path.name for path in tmp_path.glob("*.*")} >= {"cut.pcapng", "sprinkler.lua"}
