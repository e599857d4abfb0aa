"""Explains connection errors: the messages of sockets and paramiko are not written for users."""

import paramiko
from paramiko.ssh_exception import NoValidConnectionsError

from experiments.files.sanitize import sanitize

NO_GREETING = ("SSH protocol banner", "Indecipherable protocol version")
"""In errors about what a server says first (RFC 4253, section 4.2)."""


def error_clause(error: Exception) -> str:
    """A clause for a message that already names the machine and what was being done."""
    match error:
        case NoValidConnectionsError():  # one for each address of the name
            return ", ".join(dict.fromkeys(map(error_clause, error.errors.values())))
        case ConnectionRefusedError():
            return "nothing listens there (connection refused)"
        case TimeoutError():
            return "no answer (timed out)"
        case paramiko.ChannelException():
            return f"the machine before it on the way cannot connect to it ({sanitize(error.text)})"
        case OSError(strerror=str(reason)):
            return sanitize(reason)
        case EOFError():
            return "it was closed without a word"
        case paramiko.SSHException() if any(words in str(error) for words in NO_GREETING):
            return "what answers there is no SSH server, or one with too much to do"
    return sanitize(str(error)) or type(error).__name__
