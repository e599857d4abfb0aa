"""What Java starts Spark from: the jars of PySpark, without its zip, and an archive of classes.

Spark lets its Python workers import PySpark from a zip of sources, which each of them compiles anew: 0.7 s
of processor time for each of the five that a streaming query begins with. On this machine they have the same
PySpark installed, with its bytecode; so Spark's home is a folder with links to all but the zip.

Java can keep loaded and checked classes in an archive and map it at the next start (application class-data
sharing, JEP 310 and 350). On 2 cores that took the start of a session from 5.0 to 2.7 s and the first query
from 2.8 to 1.4 s. The archive belongs to one Java and one PySpark and is named after both; with others it is
simply not found. `analysis.archiving` makes it, and nothing depends on it being there.
"""

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pyspark

from experiments.files.scratch import scratch

FOLDER = Path(__file__).resolve().parent.parent / ".cache"
LINKED = ("bin", "jars")


def home() -> Path:
    """Spark's home for workers of this machine: the environment's own, or ours, made if it is missing; where
    that cannot be, PySpark's.
    """
    installed = Path(pyspark.__file__).resolve().parent
    if given := os.environ.get("SPARK_HOME"):
        return Path(given)
    made = FOLDER / f"spark-home-{_key(pyspark.__version__, str(installed))}"
    if not made.is_dir():
        with suppress(OSError):  # a checkout that cannot be written; or another process was first
            FOLDER.mkdir(exist_ok=True)
            with scratch(".making-", FOLDER) as folder:
                making = folder / made.name
                making.mkdir()
                for name in LINKED:
                    (making / name).symlink_to(installed / name)
                making.rename(made)
    return made if made.is_dir() else installed


def local_folder() -> Path:
    """Where a task may put files down: where a cluster's workers have their own, which go with the job."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])


def archive_path() -> Path:
    """Where the archive for this Java and this PySpark stands, or would."""
    java = Path(shutil.which("java") or "java").resolve()
    changed = java.stat().st_mtime_ns if java.exists() else 0
    return (
        FOLDER
        / f"spark-{_key(pyspark.__version__, pyspark.__file__, str(java), str(changed), str(home()))}.jsa"
    )


def archive_options() -> tuple[str, ...]:
    """Java's options for using the archive; none if it is not there."""
    path = archive_path()
    return (f"-XX:SharedArchiveFile={path}", "-Xshare:auto") if path.is_file() else ()


def _key(*parts: str) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]
