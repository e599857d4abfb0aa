"""A real standalone cluster of Spark on this machine: a master and two workers, each a process of its own in
folders of its own, all on loopback.

Executors get a Python that has numpy and pyarrow but not our checkout: the one that runs the tests, without
its `site` and so without what is installed there as a link.
"""

import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "CoarseGrainedExecutorBackend"
WAIT_S = 180.0  # Java on a busy machine


@dataclass(frozen=True)
class Cluster:
    """A running cluster. python: the executors' interpreter, for PYSPARK_PYTHON."""

    url: str
    python: Path
    folder: Path
    workers: tuple[int, ...]  # process ids

    @property
    def executors(self) -> list[psutil.Process]:
        """The running processes of executors."""
        children = [child for pid in self.workers for child in psutil.Process(pid).children(recursive=True)]
        return [child for child in children if _is_executor(child)]


def _is_executor(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and EXECUTOR in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False  # it ended as we looked


@contextmanager
def standalone(
    folder: Path, hidden: Path | None = None, configuration: Path | None = None
) -> Iterator[Cluster]:
    """Start a cluster below a folder.

    hidden: a folder that executors are to find empty. configuration: the folder of its spark-defaults.conf.
    """
    with ExitStack() as stack:
        master = _start(stack, folder / "master", [MASTER], None, configuration)
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        workers = []
        for number in range(2):
            own = folder / f"worker-{number}"
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(own / "work"), url]
            workers.append(_start(stack, own, [WORKER, *options], hidden, configuration))
        for worker in workers:
            _said(worker, r"(Successfully registered) with master")
        yield Cluster(url, python(folder / "python", packages=True), folder, tuple(pid for pid, _ in workers))


def python(path: Path, *, packages: bool) -> Path:
    """Create a Python that does not see this checkout, with or without the installed packages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    more = f'export PYTHONPATH="$PYTHONPATH:{sysconfig.get_path("platlib")}"\n' if packages else ""
    path.write_text(f'#!/bin/sh\n{more}exec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return path


def _start(
    stack: ExitStack,
    folder: Path,
    command: Sequence[str],
    hidden: Path | None = None,
    configuration: Path | None = None,
) -> tuple[int, Path]:
    """Start one of Spark's processes; returns its id and its log."""
    (folder / "tmp").mkdir(parents=True)
    place = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    whole = [str(SPARK_CLASS), command[0], *place, *command[1:]]
    if hidden is not None:
        script = f'mount -t tmpfs none "{hidden}" && exec "$@"'
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        whole = ["unshare", *user, "--mount", "sh", "-c", script, "sh", *whole]
    log = folder / "log"
    own_settings = {"SPARK_CONF_DIR": str(configuration)} if configuration else {}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        # Executors inherit this: killed ones leave no files, and all start quickly.
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder / 'tmp'} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_DAEMON_MEMORY": "256m",
        **own_settings,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(whole, cwd=folder, env=environment, stdout=output, stderr=output)
    stack.callback(_end, process)
    return process.pid, log


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(WAIT_S)


def _said(process: tuple[int, Path], pattern: str) -> str:
    """Wait until a process has logged this; returns the pattern's group."""
    pid, log = process
    deadline = time.monotonic() + WAIT_S
    while not (found := re.search(pattern, log.read_text())):
        assert psutil.pid_exists(pid), log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return found.group(1)
