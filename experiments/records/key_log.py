"""Key logs of TLS, whose lines allow to decrypt captured connections.

A line is a label, the connection's client random and a secret, the latter two in hexadecimal
(draft-ietf-tls-keylogfile; NSS's format). A killed program may leave half a line, and a file that a program
wrote may hold anything: only complete lines of this form count, and only the first KEY_LOG_BYTES_MAX of a
file.
"""

import re
from collections.abc import Iterator
from pathlib import Path

KEY_LOG_BYTES_MAX = 64 << 20
"""A TLS 1.3 connection takes about 900 bytes."""
PRIVATE = 0o600
"""The file mode of key logs."""
_LINE = re.compile(rb"^([A-Z][A-Z0-9_]{2,63}) ([0-9a-fA-F]{64}) ([0-9a-fA-F]{2,512})\r?$", re.MULTILINE)


def key_lines(path: Path) -> Iterator[bytes]:
    """Yield the valid lines of a key log, each with a newline. Raises OSError."""
    with path.open("rb") as file:
        content = file.read(KEY_LOG_BYTES_MAX)
    whole = content[: content.rfind(b"\n") + 1]
    for found in _LINE.finditer(whole):
        yield b" ".join(found.groups()) + b"\n"


def client_randoms(path: Path) -> frozenset[bytes]:
    """Return the client randoms of the connections in a key log (RFC 8446, 4.1.2). Raises OSError."""
    return frozenset(bytes.fromhex(line.split()[1].decode()) for line in key_lines(path))
