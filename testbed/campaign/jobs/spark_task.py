"""A job in a Spark task: passed to a process of this machine, which stays for later jobs.

Executors import this module from the zip file with our code. The process reads other files besides modules,
so the zip file is unpacked into the executor's own folder, which is removed with the executor.
"""

import json
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path

from testbed.campaign.jobs.pool import Job, LocalPool

_pools: dict[tuple[str, str], LocalPool] = {}
"""By module and setup: the pool of one process."""


def answer_request(request: str, *, module: str, setup: str, within_s: float) -> str:
    """Return the result of a job on this machine, as JSON without its subject."""
    pool = _pools.get((module, setup))
    if pool is None:
        code = _unpacked()
        pool = LocalPool(module, json.loads(setup), 1, within_s=within_s, code=code, errors=code / "errors")
        _pools[module, setup] = pool
    [result] = pool.results([Job(None, json.loads(request))])
    return json.dumps(asdict(result))


def _unpacked() -> Path:
    from pyspark import SparkFiles  # only executors come here

    folder = Path(tempfile.mkdtemp(prefix="hunt-", dir=SparkFiles.getRootDirectory()))
    archive = next(part for part in Path(__file__).parents if part.suffix == ".zip")
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    return folder
