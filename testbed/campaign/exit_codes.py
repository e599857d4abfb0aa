"""The exit codes of `cutset`, and the errors that end with one."""

import errno
import os

from analysis.errors import AnalysisError
from experiments.declared import UnknownSystemError
from experiments.files.sanitize import printable
from testbed.errors import MachineError, TestbedError
from topologies.errors import InputError

FINE = 0
FAILED = 1  # an expectation or the fidelity check failed
BAD_INPUT = 2
MACHINE = 3  # the machine cannot do what was asked
INTERRUPTED = 130

REFUSED = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
    }
    | {errno.ENAMETOOLONG, errno.ESTALE, errno.ENOMEM}
)
"""Errors of the operating system for missing permission, space or devices: no defects of the code."""

EXPECTED_ERRORS = (InputError, AnalysisError, TestbedError, OSError)
"""Errors that are no defects: their message is sufficient without a traceback."""


def exit_code_of(error: Exception) -> int | None:
    """Return the exit code of an expected error; None for a defect."""
    if _refusal(error) is not None:
        return MACHINE
    codes = {
        InputError: BAD_INPUT,
        UnknownSystemError: BAD_INPUT,
        MachineError: MACHINE,
        TestbedError: FAILED,
        AnalysisError: FAILED,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), None)


def line_of(error: Exception) -> str:
    """Return the line that is shown for an error, with unprintable characters escaped."""
    return printable(" ".join(_text_of(error).split("\n")))


def _text_of(error: Exception) -> str:
    refusal = _refusal(error)
    if refusal is None:
        return str(error)
    why = os.strerror(refusal.errno or 0)
    return (
        f"cannot continue: {why}" if refusal.filename is None else f"{os.fsdecode(refusal.filename)}: {why}"
    )


def _refusal(error: Exception) -> OSError | None:
    """Return the operating system's refusal that is this error, or made an analysis fail."""
    cause = error.__cause__ if isinstance(error, AnalysisError) else error
    return cause if isinstance(cause, OSError) and cause.errno in REFUSED else None
