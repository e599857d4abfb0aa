"""Explanations of connection errors: the messages of sockets and paramiko are not written for users."""

import paramiko
from paramiko.ssh_exception import NoValidConnectionsError

from experiments.files.sanitize import sanitize

NO_GREETING = ("SSH protocol banner", "Indecipherable protocol version")
"""Parts of errors about a server's identification string (RFC 4253, section 4.2)."""


def error_clause(error: Exception) -> str:
    """Return a clause for a message that already names the machine and the operation."""
    match error:
        case NoValidConnectionsError():  # has one error for each address of the name
            return ", ".join(dict.fromkeys(map(error_clause, error.errors.values())))
        case ConnectionRefusedError():
            return "nothing listens there (connection refused)"
        case TimeoutError():
            return "no answer (timed out)"
        case paramiko.ChannelException():
            return f"the jump host before it cannot connect to it ({sanitize(error.text)})"
        case OSError(strerror=str(reason)):
            return sanitize(reason)
        case EOFError():
            return "the server closed the connection without an error message"
        case paramiko.SSHException() if any(words in str(error) for words in NO_GREETING):
            return "the server is not an SSH server, or is overloaded"
    return sanitize(str(error)) or type(error).__name__
