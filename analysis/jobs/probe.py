"""What executors are and what they see: run on each of them before there is work.

Imports only what every Python has, since executors may have no more than that.
"""

import importlib
import socket
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NEEDED = ("numpy", "pyarrow")


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """Asked of each executor. folder: where it should find `token`, and try to write. sizes: of captures."""

    folder: Path
    token: str
    sizes: Mapping[Path, int]

    @property
    def note(self) -> Path:
        """The file that holds the token."""
        return self.folder / "token"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """An executor's answer. written: the name of the file that it could write, as far as it knows."""

    host: str
    python: str
    missing: tuple[str, ...]
    reads: bool
    written: str | None


def look(question: ProbeQuestion) -> ProbeAnswer:
    """Answer, on an executor."""
    return ProbeAnswer(
        host=socket.gethostname(),
        python=sys.executable,
        missing=tuple(name for name in NEEDED if not _importable(name)),
        reads=_reads(question),
        written=_written(question.folder),
    )


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _reads(question: ProbeQuestion) -> bool:
    """The same files, and not others of the same name."""
    with suppress(OSError):
        sizes = {path: path.stat().st_size for path in question.sizes}
        with (next(iter(sizes), question.note)).open("rb"):  # may be seen and still not be read
            return question.note.read_text() == question.token and sizes == question.sizes
    return False


def _written(folder: Path) -> str | None:
    path = folder / f"seen-{uuid.uuid4().hex}"
    with suppress(OSError):
        path.touch()
        return path.name
    return None
