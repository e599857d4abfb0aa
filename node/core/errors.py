"""Errors of nodes: which side broke the protocol, and how.

A peer's bytes or messages raise `RemoteProtocolError`; the reader of the connection catches it, answers with
REFUSED and closes that one connection. `LocalProtocolError` is raised to the caller before anything is sent.
`StorageError` reports a log on disk that cannot be used. Bugs of a machine raise AssertionError or any other
exception: `failure_text` describes it on one line. In virtual time, where all machines share one process,
`NodeFailureError` is raised for them.
"""

import sys
import traceback

FAILURE_LENGTH_MAX = 300


class ProtocolError(Exception):
    """A message or request violates the protocol."""


class LocalProtocolError(ProtocolError):
    """This side requested something that the protocol does not permit."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that the protocol does not permit."""


class NodeFailureError(Exception):
    """A process's own code raised an exception. The text names the process, the place and the exception."""


def failure_text(error: BaseException, machine: object = None) -> str:
    """Format an exception as `FILE:LINE: ValueError: message`, on one line.

    The line is the innermost one of the file that defines the machine's class, if the traceback contains it,
    else the line that raised.
    """
    module = sys.modules.get(type(machine).__module__)
    passed = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in passed if frame.filename == getattr(module, "__file__", None)]
    place = [f"{frame.filename}:{frame.lineno}" for frame in (own or passed)[-1:]]
    message = " ".join(str(error).split())[:FAILURE_LENGTH_MAX]
    return ": ".join(filter(None, (*place, type(error).__name__, message)))


class StorageError(Exception):
    """A log cannot be read or written. The text gives the file, the problem and what to do."""
