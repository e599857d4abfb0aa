"""Spark's Java classes in an archive, so that Spark starts in half the time.

Java can keep loaded and checked classes in a file and map it at the next start (application class-data
sharing, JEP 310 and 350). On 2 cores that took the start of a session from 5.0 to 2.7 s and the first query
from 2.8 to 1.4 s. The archive belongs to one Java and one PySpark and is named after both; with others it
is simply not found. Here is where it stands and how Java is told; `analysis.archiving` makes it, and nothing
depends on it being there.
"""

import hashlib
import shutil
from pathlib import Path

import pyspark

FOLDER = Path(__file__).resolve().parent.parent / ".cache"


def archive_path() -> Path:
    """Where the archive for this Java and this PySpark stands, or would."""
    java = Path(shutil.which("java") or "java").resolve()
    changed = java.stat().st_mtime_ns if java.exists() else 0
    key = hashlib.sha256(f"{pyspark.__version__} {pyspark.__file__} {java} {changed}".encode()).hexdigest()
    return FOLDER / f"spark-{key[:12]}.jsa"


def archive_options() -> tuple[str, ...]:
    """Java's options for using the archive; none if it is not there."""
    path = archive_path()
    return (f"-XX:SharedArchiveFile={path}", "-Xshare:auto") if path.is_file() else ()
