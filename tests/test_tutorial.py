"""docs/tutorial.md: its files and its commands, in an empty folder and in the order of the page."""

import re
import shlex
from pathlib import Path

import pytest

from testbed.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
QUICKER = {"200/s": "150/s", "15s": "8s", "at: 5s": "at: 1s", "for: 4s": "for: 2s"}
"""Values of the page, and those in their place, so that the run takes half as long."""
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
        Path(name).write_text(re.sub("|".join(QUICKER), lambda found: QUICKER[found[0]], text))
    assert len(files()) == 2
    assert len(commands()) >= 10
    for words in commands():
        code = main.run([word.replace("250ms, 500ms, 1s", "250ms, 1s") for word in words])
        said = capsys.readouterr()
        is_real_run = words[0] == "run" and "simulator" not in words
        assert code == 0 or (is_real_run and code == INVALID and "invalid" in said.out), (words, said)
    assert {path.name for path in tmp_path.glob("*.*")} >= {"cut.pcapng", "sprinkler.lua"}
