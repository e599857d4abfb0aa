"""The system of docs/bring-your-own.md, as it stands there, on real packets."""

import re
from pathlib import Path

import pytest

from experiments.rundir import RunDirectory
from testbed.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "bring-your-own.md"


def written(folder: Path) -> None:
    """The page's files."""
    for name, text in re.findall(r"^`([\w./]+)`.*?:\n\n```\w+\n(.*?)```", PAGE.read_text(), re.M | re.S):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.network
@pytest.mark.slow
def test_the_page_is_a_system_that_works(tmp_path):
    written(tmp_path)
    assert sum(len(path.read_text().splitlines()) for path in tmp_path.glob("relay/[sc]*")) < 60
    assert main.run(["run", str(tmp_path / "relay.yaml"), "--out", str(tmp_path / "runs")]) in {0, 1}
    run = RunDirectory.open(next((tmp_path / "runs").iterdir()))
    summary = run.read_summary()
    assert summary["events"]["published"] > 1900
    assert summary["events"]["lost"] == summary["events"]["duplicated"] == 0
    assert summary["events"]["stray"] == summary["events"]["corrupted"] == 0
    assert summary["recovery"]["cut"]["switch_s"] > 2, "nothing came while the link was down"
