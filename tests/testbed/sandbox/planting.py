"""Plants modules of the standard library's names in a folder; each leaves a mark there when imported."""

from collections.abc import Sequence
from pathlib import Path

NAMES = (
    "json", "random", "select", "struct", "numpy", "click", "testbed", "analysis", "node", "experiments",
    "sitecustomize", "usercustomize", "encodings", "pyspark", "matplotlib", "ensurepip", "venv",
)  # fmt: skip
_MODULE = """\
import os
descriptor = os.open({mark!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
os.write(descriptor, b"%d\\n" % os.getpid())
os.close(descriptor)
"""


def plant_modules(folder: Path) -> None:
    """Plant modules that another user may have left in a world-writable folder."""
    folder.chmod(0o1777)
    for name in NAMES:
        (folder / f"{name}.py").write_text(_MODULE.format(mark=str(folder / f"{name}.mark")))


def marks(folder: Path) -> list[str]:
    """Which of them ran."""
    return sorted(path.stem for path in folder.glob("*.mark"))


def plant_programs(folder: Path, names: Sequence[str]) -> None:
    """Programs of these names that leave a mark too, for processes with the working directory in PATH."""
    for name in names:
        program = folder / name
        program.write_text(f"#!/bin/sh\necho $$ >>'{folder}/{name}.mark'\nexit 1\n")
        program.chmod(0o755)
