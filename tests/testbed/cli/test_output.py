"""Commands that only show something end quietly when the reader of their output has closed it."""

import os
import subprocess
import sys

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


def test_a_reader_that_closes_the_pipe_is_no_failure():
    assert without_a_reader("list") == (0, "")
