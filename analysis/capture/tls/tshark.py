"""Decrypts a capture of TLS records with tshark and a key log.

One call of tshark gives a line for each packet, with the real content type of the record (RFC 8446, 5.2), and
the connections' contents by packet (`-z follow,tls,yaml`). Its standard output has the lines first, and is
read as it arrives. tshark runs without a shell, with limits of memory and time, and with its own profile: no
settings of the user, and no protocols above TLS, so that it treats plaintext as bytes.
"""

import base64
import contextlib
import functools
import os
import resource
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from analysis.capture.tls.sessions import SERVER_PORT
from analysis.errors import AnalysisError
from experiments import child_processes

PROGRAM = "tshark"
PROTOCOLS = frozenset(("frame", "raw", "ip", "tcp", "tls", "data"))
MEMORY_BYTES_MAX = 2 << 30
START_S = 120.0
BYTES_PER_S_MIN = 50_000
"""The slowest accepted rate, in bytes of capture. With small records tshark reads 1 MB/s on a free CPU."""
_DISABLED = "disabled_protos"  # a file of a profile, wireshark(4)
_PACKET, _DATA, _CONTENT = "  - packet: ", "    data: ", "      "


class Tshark:
    """tshark on this machine, with a profile in a folder that must exist as long as the object is used."""

    def __init__(self, folder: Path) -> None:
        """Find tshark and write the profile. Raises AnalysisError if it is missing or does not work."""
        found = shutil.which(PROGRAM)
        if found is None:
            raise AnalysisError(f"{PROGRAM} is not installed; it decrypts TLS connections")
        self._path = found
        self._folder = folder
        self._environment = {**os.environ, "WIRESHARK_CONFIG_DIR": str(folder), "LC_ALL": "C"}
        disabled = "".join(f"{name}\n" for _, name in protocols(found) if name not in PROTOCOLS)
        (folder / _DISABLED).write_text(disabled)

    def decrypted(
        self, capture: Path, key_log: Path, connections: int, kinds: bytearray
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the number, from 0, and the plaintext of each packet, connection by connection.

        kinds: receives the content type of each packet's record, 0 if unknown. Raises AnalysisError if tshark
        fails; the packets yielded before are valid.
        """
        limit_s = START_S + capture.stat().st_size / BYTES_PER_S_MIN
        with tempfile.TemporaryFile(dir=self._folder) as errors:
            process = child_processes.start(
                [self._path, *options(capture, key_log, connections)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environment,
                text=True,
                encoding="ascii",
                errors="replace",
            )
            with contextlib.suppress(
                ProcessLookupError, PermissionError
            ):  # it has ended, or already has a lower limit
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
            timeout = threading.Timer(limit_s, process.kill)
            timeout.start()
            assert process.stdout is not None
            try:
                yield from read(process.stdout, kinds)
                code = process.wait()
            finally:
                timeout.cancel()
                process.kill()  # no effect unless the consumer stopped early
                process.wait()
                process.stdout.close()
            if code != 0:
                errors.seek(0)
                lines = errors.read().decode(errors="replace").strip().splitlines()
                raise AnalysisError(
                    f"{PROGRAM} ended with code {code}: {lines[-1] if lines else 'no output'}"
                )


@functools.cache
def protocols(path: str) -> tuple[tuple[str, str], ...]:
    """Return the titles and names of the protocols that this tshark knows. Raises AnalysisError if it does
    not work.
    """
    try:
        done = child_processes.run(
            [path, "-G", "protocols"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise AnalysisError(f"{PROGRAM} does not work: {error}") from error
    lines = (line.split("\t") for line in done.stdout.decode(errors="replace").splitlines())
    return tuple((line[0], line[2]) for line in lines if len(line) > 2)


def options(capture: Path, key_log: Path, connections: int) -> Sequence[str]:
    """Return the arguments; see tshark(1)."""
    fields = ("frame.number", "tls.record.opaque_type", "tls.record.content_type")
    return [
        *("-n", "-r", str(capture), "-d", f"tcp.port=={SERVER_PORT},tls"),
        *("-o", f"tls.keylog_file:{key_log}", "-o", "tls.desegment_ssl_application_data:FALSE"),
        *("-T", "fields", *(part for name in fields for part in ("-e", name))),
        *(part for number in range(connections) for part in ("-z", f"follow,tls,yaml,{number}")),
    ]


def read(lines: IO[str], kinds: bytearray) -> Iterator[tuple[int, bytes]]:
    """Read both parts of the output; see `Tshark.decrypted`."""
    number, content = -1, []
    for line in lines:
        if line.startswith(_CONTENT):
            content.append(line.strip())
            continue
        if number >= 0 and content:
            yield number, base64.b64decode("".join(content))
            number, content = -1, []
        if line.startswith(_PACKET):
            number = int(line.removeprefix(_PACKET)) - 1
        elif line[:1].isdigit():
            _note_kind(line, kinds)
    if number >= 0 and content:
        yield number, base64.b64decode("".join(content))


def _note_kind(line: str, kinds: bytearray) -> None:
    """Note the content type from a line of fields. Undecrypted records of TLS 1.3 have only the outer one."""
    number, _, kind = line.rstrip("\n").split("\t")
    place, first = int(number) - 1, kind.partition(",")[0]
    if first.isdigit() and place < len(kinds):
        kinds[place] = int(first)
