"""Exit codes and lines of errors."""

import errno

from analysis.errors import AnalysisError
from testbed.campaign import exit_codes


def test_a_full_disk_that_ends_an_analysis_is_the_machines_refusal():
    error = AnalysisError("reading packets failed: OSError")
    error.__cause__ = OSError(errno.ENOSPC, "no space", "/runs/a/part-3.parquet")
    assert exit_codes.exit_code_of(error) == exit_codes.MACHINE
    assert exit_codes.line_of(error) == "/runs/a/part-3.parquet: No space left on device"


def test_an_analysis_that_fails_for_its_input_says_why():
    error = AnalysisError("no packets")
    error.__cause__ = OSError(errno.ENOENT, "no such file", "/runs/a")
    assert exit_codes.exit_code_of(error) == exit_codes.FAILED
    assert exit_codes.line_of(error) == "no packets"
