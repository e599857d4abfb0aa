"""Commands that only show something end quietly when their reader has gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.pages.report.synthetic_run import write_run

START = "from testbed.cli.main import main; main()"


def without_a_reader(*arguments: str) -> tuple[int, str]:
    """Run a command without a reader of its output; return its exit code and its errors."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", START, *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["plan", "link-failure"], ["plan", "link-failure", "--json"], ["schema", "experiment"]],
    ids=" ".join,
)
def test_a_reader_that_left_is_no_failure(arguments: list[str]) -> None:
    assert without_a_reader(*arguments) == (0, "")


def test_a_picture_is_drawn_whether_or_not_the_plan_is_read(tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    code, said = without_a_reader("plan", "link-failure", "--svg", str(picture))
    assert (code, said) == (0, f"picture {picture}\n")
    assert picture.is_file()


@pytest.mark.slow
def test_a_comparison_may_be_left_unread(tmp_path: Path) -> None:
    runs = [str(write_run(tmp_path / name).path) for name in ("a", "b")]
    assert without_a_reader("compare", "--text", *runs) == (0, "")
