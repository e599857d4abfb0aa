"""A case of a hunt within a Spark task: handed to a process of this machine, which stays for the next ones.

Imported on executors from the zip file that has our code. What the process reads besides modules it needs as
files, so that file is unpacked, into the executor's own folder, which goes with it.
"""

import json
import os
import selectors
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from experiments import child_processes
from experiments.child_python import python_command

FAILED = "failed"
"""The field of an answer in place of one: why there is none."""
MODULE = "testbed.campaign.hunting.worker"
ERRORS_MAX = 2000
CHUNK_BYTES = 1 << 20
_running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
"""By setup: the process that has it, and what it says on standard error."""


def answered(request: str, *, setup: str, within_s: float) -> str:
    """What a process of this machine answers to a request, as JSON."""
    if setup not in _running:
        _running[setup] = _started(setup)
    process, errors = _running[setup]
    said = _asked(process, request, within_s)
    if said is None:
        del _running[setup]
        process.kill()
        process.wait()
        text = errors.read_text(errors="replace")[-ERRORS_MAX:].strip()
        why = text.splitlines()[-1] if text else f"no answer within {within_s:g} s"
        return json.dumps({FAILED: why})
    return said


def _started(setup: str) -> tuple[subprocess.Popen[bytes], Path]:
    folder = Path(tempfile.mkdtemp(prefix="hunt-", dir=_own_folder()))
    archive = next(part for part in Path(__file__).parents if part.suffix == ".zip")
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    errors = folder / "errors"
    with errors.open("wb") as file:
        process = child_processes.start(
            python_command(MODULE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            cwd=folder,
            env=_environment(os.environ, folder),
        )
    _tell(process, setup)
    return process, errors


def _own_folder() -> str:
    from pyspark import SparkFiles  # only executors come here

    return str(SparkFiles.getRootDirectory())


def _environment(known: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Our code first, then what the executor's Python has."""
    paths = [str(folder), *filter(None, known.get("PYTHONPATH", "").split(os.pathsep))]
    return {**known, "PYTHONPATH": os.pathsep.join(paths)}


def _tell(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


def _asked(process: subprocess.Popen[bytes], request: str, within_s: float) -> str | None:
    """The line that it answers; None if it ends or takes too long."""
    assert process.stdout is not None
    try:
        _tell(process, request)
    except BrokenPipeError:
        return None
    said, ends_s = bytearray(), time.monotonic() + within_s
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not said.endswith(b"\n"):
            if not selector.select(max(0.0, ends_s - time.monotonic())):
                return None
            data = os.read(process.stdout.fileno(), CHUNK_BYTES)
            if not data:
                return None
            said += data
    return said.decode()
