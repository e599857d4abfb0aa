"""Spark's home on this machine: the jars of PySpark without its zip, and an archive of Java classes.

Spark lets its Python workers import PySpark from a zip of sources, which each worker compiles again: 0.7 s of
processor time for each of the five workers that a streaming query starts. Workers on this machine have the
same PySpark installed, with its bytecode, so Spark's home is a folder with links to everything but the zip.

Java can keep loaded and verified classes in an archive and map it at the next start (application class-data
sharing, JEP 310 and 350). On 2 cores this shortened the start of a session from 5.0 to 2.7 s and the first
query from 2.8 to 1.4 s. The archive is named after one Java and one PySpark; with other versions it is not
found. `analysis.archiving` creates it; everything works without it.
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
    """Return Spark's home for workers of this machine.

    This is SPARK_HOME if set, or else our own folder, which is created if missing. If it cannot be created,
    it is PySpark's folder.
    """
    installed = Path(pyspark.__file__).resolve().parent
    if given := os.environ.get("SPARK_HOME"):
        return Path(given)
    made = FOLDER / f"spark-home-{_key(pyspark.__version__, str(installed))}"
    if not made.is_dir():
        with suppress(OSError):  # the checkout is read-only, or another process was first
            FOLDER.mkdir(exist_ok=True)
            with scratch(".making-", FOLDER) as folder:
                making = folder / made.name
                making.mkdir()
                for name in LINKED:
                    (making / name).symlink_to(installed / name)
                making.rename(made)
    return made if made.is_dir() else installed


def local_folder() -> Path:
    """Return a folder for a task's temporary files. On a cluster it is one that the worker removes with the
    job, even if the task's process is killed.
    """
    of_job = os.environ.get("SPARK_EXECUTOR_DIRS", "").split(os.pathsep)[0]
    return Path(of_job or os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])


def archive_path() -> Path:
    """Return the path of the archive for this Java and this PySpark, which need not exist."""
    java = Path(shutil.which("java") or "java").resolve()
    changed = java.stat().st_mtime_ns if java.exists() else 0
    return (
        FOLDER
        / f"spark-{_key(pyspark.__version__, pyspark.__file__, str(java), str(changed), str(home()))}.jsa"
    )


def archive_options() -> tuple[str, ...]:
    """Return Java's options for using the archive; empty if there is none."""
    path = archive_path()
    return (f"-XX:SharedArchiveFile={path}", "-Xshare:auto") if path.is_file() else ()


def _key(*parts: str) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]
