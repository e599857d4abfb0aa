"""Protocols, and the adapters that run their nodes: over sockets, in virtual time, or as programs of other
systems.

The copy that `make native` compiled is imported (`node.native`) unless a source changed since, or the
environment variable CUTSET_PLAIN is not empty.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
NATIVE = Path(sys.prefix) / "native"


def sources(package: Path) -> dict[Path, tuple[int, int]]:
    """Return size and time of change of a package's sources, by their paths within it."""
    files = {path.relative_to(package): path.stat() for path in package.rglob("*.py")}
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in files.items()}


COMPILED = (
    not os.environ.get("CUTSET_PLAIN") and NATIVE.is_dir() and sources(NATIVE / "node") == sources(HERE)
)
if COMPILED:
    sys.path.append(str(NATIVE))  # where the library is that all compiled modules share
    __path__[:] = [str(NATIVE / "node")]
