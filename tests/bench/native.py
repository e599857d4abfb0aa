"""Compiled nodes (`make native`) beside plain Python: the same traces, in less processor time."""

import os
import statistics
import sys

import node
from tests.bench.rows import Row, row, run_and_wait

PAIRS = 3
RUNS = {"abilene-cuts": 0.55, "nemesis": None, "scribe-nemesis": None, "meghdoot-nemesis": None}
"""Simulated runs, and the ratio that is asked."""


def measure() -> list[Row]:
    """Rows for `make bench ARGS=native`. Raises RuntimeError if nodes are not compiled, or traces differ."""
    if node.sources(node.NATIVE / "node") != node.sources(node.HERE):
        raise RuntimeError("the nodes are not compiled, or changed since: make native")
    what = "compiled beside plain, processor"
    return [row(f"{run}, {what}", _ratio(run), "ratio", asked) for run, asked in RUNS.items()]


def _ratio(run: str) -> float:
    pairs = [(_traced(run, plain=""), _traced(run, plain="1")) for _ in range(PAIRS)]
    if len({trace for pair in pairs for trace, _ in pair}) > 1:
        raise RuntimeError(f"{run}: compiled nodes leave other traces")
    return statistics.median(compiled / plain for (_, compiled), (_, plain) in pairs)


def _traced(run: str, *, plain: str) -> tuple[bytes, float]:
    """Return what `tests.bench.traces` says of a run, and its processor time, in seconds."""
    words = [sys.executable, "-m", "tests.bench.traces", run]
    return run_and_wait(words, os.environ | {"CUTSET_PLAIN": plain})
