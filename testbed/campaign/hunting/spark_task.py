"""A case of a hunt in a Spark task: passed to a process of this machine, which stays for later cases.

Executors import this module from the zip file with our code. The process reads other files besides modules,
so the zip file is unpacked into the executor's own folder, which is removed with the executor.
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
"""The field with the reason, if there is no answer."""
MODULE = "testbed.campaign.hunting.worker"
ERRORS_MAX = 2000
CHUNK_BYTES = 1 << 20
_running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
"""By setup: the process with this setup, and the file of its standard error."""


def answer_request(request: str, *, setup: str, within_s: float) -> str:
    """Return the answer of a process of this machine to a request, as JSON."""
    if setup not in _running:
        _running[setup] = _started(setup)
    process, errors = _running[setup]
    answer = _request(process, request, within_s)
    if answer is None:
        del _running[setup]
        process.kill()
        process.wait()
        text = errors.read_text(errors="replace")[-ERRORS_MAX:].strip()
        why = text.splitlines()[-1] if text else f"no answer within {within_s:g} s"
        return json.dumps({FAILED: why})
    return answer


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
    _send(process, setup)
    return process, errors


def _own_folder() -> str:
    from pyspark import SparkFiles  # only executors come here

    return str(SparkFiles.getRootDirectory())


def _environment(known: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment with our code first in PYTHONPATH, before the executor's."""
    paths = [str(folder), *filter(None, known.get("PYTHONPATH", "").split(os.pathsep))]
    return {**known, "PYTHONPATH": os.pathsep.join(paths)}


def _send(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


def _request(process: subprocess.Popen[bytes], request: str, within_s: float) -> str | None:
    """Send a request and return the line of the answer; None if the process ends or takes too long."""
    assert process.stdout is not None
    try:
        _send(process, request)
    except BrokenPipeError:
        return None
    received, ends_s = bytearray(), time.monotonic() + within_s
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not received.endswith(b"\n"):
            if not selector.select(max(0.0, ends_s - time.monotonic())):
                return None
            data = os.read(process.stdout.fileno(), CHUNK_BYTES)
            if not data:
                return None
            received += data
    return received.decode()
