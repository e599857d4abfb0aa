"""Probes executors before there is work: what they have installed and which files they see.

Imports only the standard library, since executors may have nothing else.
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
"""Modules that tasks of an analysis import."""


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """Question to each executor.

    folder: where it finds `token` and tries to write. sizes: of captures. modules: those that tasks import.
    """

    folder: Path
    token: str
    sizes: Mapping[Path, int]
    modules: tuple[str, ...] = NEEDED

    @property
    def note(self) -> Path:
        """The file that holds the token."""
        return self.folder / "token"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """An executor's answer. written: the name of the file that it wrote, from its own point of view."""

    host: str
    python: str
    missing: tuple[str, ...]
    reads: bool
    written: str | None


def answer_probe(question: ProbeRequest) -> ProbeAnswer:
    """Answer the question; runs on an executor."""
    return ProbeAnswer(
        host=socket.gethostname(),
        python=sys.executable,
        missing=tuple(filter(None, map(_missing, question.modules))),
        reads=_reads(question),
        written=_written(question.folder),
    )


def _missing(module: str) -> str | None:
    """Return what is not installed: the module, or one that it imports; None if it can be imported."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        return error.name or module
    return None


def _reads(question: ProbeRequest) -> bool:
    """Return whether this machine sees the same files, and not others with the same names."""
    with suppress(OSError):
        sizes = {path: path.stat().st_size for path in question.sizes}
        with (next(iter(sizes), question.note)).open("rb"):  # a visible file may still be unreadable
            return question.note.read_text() == question.token and sizes == question.sizes
    return False


def _written(folder: Path) -> str | None:
    path = folder / f"seen-{uuid.uuid4().hex}"
    with suppress(OSError):
        path.touch()
        return path.name
    return None
