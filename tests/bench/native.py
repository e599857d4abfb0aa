"""Compiled nodes (`make native`) beside plain Python: the same traces, in less processor time."""

import os
import statistics
import subprocess
import sys
from typing import Any

import node

PAIRS = 3
RUNS = {"abilene-cuts": 0.55, "nemesis": None, "scribe-nemesis": None, "meghdoot-nemesis": None}
"""Simulated runs, and the ratio that is asked."""


def measure() -> list[dict[str, Any]]:
    """Rows for `make bench ARGS=native`. Raises RuntimeError if nodes are not compiled, or traces differ."""
    if node.sources(node.NATIVE / "node") != node.sources(node.HERE):
        raise RuntimeError("the nodes are not compiled, or changed since: make native")
    what = "compiled beside plain, processor"
    return [
        {"name": f"{run}, {what}", "value": _ratio(run), "asked": asked, "unit": "ratio"}
        for run, asked in RUNS.items()
    ]


def _ratio(run: str) -> float:
    pairs = [(_traced(run, plain=""), _traced(run, plain="1")) for _ in range(PAIRS)]
    if len({trace for pair in pairs for trace, _ in pair}) > 1:
        raise RuntimeError(f"{run}: compiled nodes leave other traces")
    return statistics.median(compiled / plain for (_, compiled), (_, plain) in pairs)


def _traced(run: str, *, plain: str) -> tuple[bytes, float]:
    """Return what `tests.bench.traces` says of a run, and its processor time, in seconds."""
    words = [sys.executable, "-m", "tests.bench.traces", run]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=os.environ | {"CUTSET_PLAIN": plain}) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return said, used.ru_utime + used.ru_stime
