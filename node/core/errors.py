"""The nodes' errors: who broke the protocol, and how.

`RemoteProtocolError` is what a peer's bytes or messages raise; whoever reads from the network catches it,
answers with REFUSED and closes that one connection. `LocalProtocolError` is raised towards our own caller,
before anything is sent. `StorageError` is a log on disk that cannot be used. Bugs of a machine are
assertions, or whatever else it raises: `failure_text` says in one line where and what, and `NodeFailureError`
is raised for them in virtual time, where all machines share one process.
"""

import sys
import traceback

FAILURE_LENGTH_MAX = 300


class ProtocolError(Exception):
    """Something is not as the protocol has it."""


class LocalProtocolError(ProtocolError):
    """Our own side asked for something that the protocol does not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that the protocol does not allow."""


class NodeFailureError(Exception):
    """A process's own code raised: says which process, where and what."""


def failure_text(error: BaseException, machine: object = None) -> str:
    """`FILE:LINE: ValueError: what it says`, on one line. The line is the innermost one of the file that
    defines the machine's class, if it passed there, else where it was raised.
    """
    module = sys.modules.get(type(machine).__module__)
    passed = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in passed if frame.filename == getattr(module, "__file__", None)]
    place = [f"{frame.filename}:{frame.lineno}" for frame in (own or passed)[-1:]]
    said = " ".join(str(error).split())[:FAILURE_LENGTH_MAX]
    return ": ".join(filter(None, (*place, type(error).__name__, said)))


class StorageError(Exception):
    """A log cannot be read or written: says which file, what is wrong with it, and what to do."""
