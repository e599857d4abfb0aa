"""Key logs of TLS: lines by which whoever has them can decrypt captured connections.

A line is a label, the connection's client random and a secret, both in hexadecimal digits
(draft-ietf-tls-keylogfile; NSS's format). A program that was killed may leave half a line, and nobody knows
what else may stand in a file that a program wrote: only whole lines of this form count, and of a file no more
than KEY_LOG_BYTES_MAX.
"""

import re
from collections.abc import Iterator
from pathlib import Path

KEY_LOG_BYTES_MAX = 64 << 20
"""A connection of TLS 1.3 takes some 900 bytes."""
PRIVATE = 0o600
"""The mode of such files."""
_LINE = re.compile(rb"^([A-Z][A-Z0-9_]{2,63}) ([0-9a-fA-F]{64}) ([0-9a-fA-F]{2,512})\r?$", re.MULTILINE)


def key_lines(path: Path) -> Iterator[bytes]:
    """The lines of a key log, each with its end. Raises OSError."""
    with path.open("rb") as file:
        content = file.read(KEY_LOG_BYTES_MAX)
    whole = content[: content.rfind(b"\n") + 1]
    for found in _LINE.finditer(whole):
        yield b" ".join(found.groups()) + b"\n"


def client_randoms(path: Path) -> frozenset[bytes]:
    """The connections whose keys a key log has, by the client's random (RFC 8446, 4.1.2). Raises OSError."""
    return frozenset(bytes.fromhex(line.split()[1].decode()) for line in key_lines(path))
