"""The nodes' errors: who broke the protocol, and how.

`RemoteProtocolError` is what a peer's bytes or messages raise; whoever reads from the network catches it,
answers with REFUSED and closes that one connection. `LocalProtocolError` is raised towards our own caller,
before anything is sent. `StorageError` is a log on disk that cannot be used. Bugs of a machine are
assertions, not these.
"""


class ProtocolError(Exception):
    """Something is not as the protocol has it."""


class LocalProtocolError(ProtocolError):
    """Our own side asked for something that the protocol does not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that the protocol does not allow."""


class StorageError(Exception):
    """A log cannot be read or written: says which file, what is wrong with it, and what to do."""
