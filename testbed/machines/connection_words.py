"""What happened to a connection, in words: what sockets and paramiko raise is written for programs."""

import paramiko
from paramiko.ssh_exception import NoValidConnectionsError

from testbed.one_line import one_line

NO_GREETING = ("SSH protocol banner", "Indecipherable protocol version")
"""In errors about what a server says first (RFC 4253, section 4.2)."""


def what_happened(error: Exception) -> str:
    """A clause for a message that says already which machine, and where."""
    match error:
        case NoValidConnectionsError():  # one for each address of the name
            return ", ".join(dict.fromkeys(map(what_happened, error.errors.values())))
        case ConnectionRefusedError():
            return "nothing listens there (connection refused)"
        case TimeoutError():
            return "no answer (timed out)"
        case paramiko.ChannelException():
            return f"the machine before it on the way cannot connect to it ({one_line(error.text)})"
        case OSError(strerror=str(reason)):
            return one_line(reason)
        case EOFError():
            return "it was closed without a word"
        case paramiko.SSHException() if any(words in str(error) for words in NO_GREETING):
            return "what answers there is no SSH server, or one with too much to do"
    return one_line(str(error)) or type(error).__name__
