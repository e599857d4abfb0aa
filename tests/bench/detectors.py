"""Which detector finds planted changes, how soon, and how often it errs: docs/regressions.md's table.

    python -m tests.bench.detectors [--otava PYTHON]

Every detector sees the same series, a value a night, and is asked again each night. Apache Otava needs an
older NumPy than Cutset, so it is asked in an environment of its own, whose interpreter is given:

    python -m venv /tmp/otava && /tmp/otava/bin/pip install apache-otava
    python -m tests.bench.detectors --otava /tmp/otava/bin/python
"""

import argparse
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import ruptures
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from analysis.regressions.change_points import change_points
from analysis.regressions.checking import WRONG_MAX
from tests.analysis.regressions.noise import KINDS, nights, until

Floats = NDArray[np.float64]
Detector = Callable[[Sequence[Floats]], list[list[int]]]
"""From series to the places of their change points."""

SERIES_OF_A_NIGHT = 400
QUIET, PLANTED_IN = 25, 11
BEFORE, AFTER = 120, 60
FRACTIONS = (0.05, 0.10, 0.30)
NEAR = 5
"""A change point counts as found within so many nights of where it is."""
OTAVA = """
import json, sys
from otava.analysis import compute_change_points
p, series = json.load(sys.stdin)
found = [[int(c.index) for c in compute_change_points(s, window_len=50, max_pvalue=p)[0]] for s in series]
json.dump(found, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Score:
    """false: change points in quiet series, a series and 100 nights. soon: for each kind of noise and size of
    change, after how many nights half of the series showed it, None if half of them never did."""

    false: float
    soon: dict[tuple[str, float], int | None]


def with_ranks(series: Sequence[Floats]) -> list[list[int]]:
    """Cutset's own, as sure as it must be among the series of a night."""
    doubt_max = WRONG_MAX / (2 * SERIES_OF_A_NIGHT)
    return [[shift.at for shift in change_points(each) if shift.p <= doubt_max] for each in series]


def with_ruptures(series: Sequence[Floats], kernel: str, penalty: float) -> list[list[int]]:
    """ruptures alone. penalty: times the logarithm of the number of nights."""
    found = []
    for each in series:
        steps = np.abs(np.diff(each))
        scaled = (each - np.median(each)) / (1.4826 * np.median(steps) / np.sqrt(2))
        search = ruptures.KernelCPD(kernel=kernel, min_size=2).fit(scaled)
        found.append([int(at) for at in search.predict(pen=penalty * np.log(each.size))[:-1]])
    return found


def with_otava(series: Sequence[Floats], python: Path, p_max: float) -> list[list[int]]:
    """Apache Otava, by the interpreter that has it."""
    asked = json.dumps([p_max, [each.tolist() for each in series]])
    done = subprocess.run([python, "-c", OTAVA], input=asked, capture_output=True, text=True, check=True)
    found: list[list[int]] = json.loads(done.stdout)
    return found


def score(detect: Detector) -> Score:
    """Ask a detector each night of quiet series, and of such with a change."""
    soon: dict[tuple[str, float], int | None] = {}
    false = 0
    for kind in KINDS:
        for number in range(QUIET):
            quiet = nights(kind, BEFORE + 100, np.random.default_rng([number, 1]))
            seen: list[int] = []
            for found in detect([until(BEFORE + night, quiet).medians for night in range(1, 101)]):
                for at in found:
                    if not any(abs(at - other) <= NEAR for other in seen):
                        seen.append(at)
            false += len(seen)
        for fraction in FRACTIONS:
            waits = [_wait(detect, kind.name, number, fraction) for number in range(PLANTED_IN)]
            half = float(np.median(waits))
            soon[kind.name, fraction] = int(np.ceil(half)) if np.isfinite(half) else None
    return Score(false / (QUIET * len(KINDS)), soon)


def _wait(detect: Detector, name: str, number: int, fraction: float) -> float:
    kind = next(kind for kind in KINDS if kind.name == name)
    rng = np.random.default_rng([number, 2])
    planted = nights(kind, BEFORE + AFTER, rng, worse_from=BEFORE, fraction=fraction)
    asked = [until(BEFORE + night, planted).medians for night in range(1, AFTER + 1)]
    for night, found in enumerate(detect(asked), start=1):
        if any(abs(at - BEFORE) <= NEAR for at in found):
            return night
    return float("inf")


def main() -> None:
    """Ask all of them and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.detectors")
    parser.add_argument("--otava", type=Path, metavar="PYTHON", help="an interpreter that has apache-otava")
    python = parser.parse_args().otava
    detectors: dict[str, Detector] = {
        "ruptures on ranks, then exact tests (Cutset's)": with_ranks,
        "ruptures, linear kernel, 3 log n": partial(with_ruptures, kernel="linear", penalty=3.0),
        "ruptures, linear kernel, 6 log n": partial(with_ruptures, kernel="linear", penalty=6.0),
        "ruptures, rbf kernel, 1 log n": partial(with_ruptures, kernel="rbf", penalty=1.0),
    }
    if python is not None:
        for p_max in (1e-3, 1e-4, 1e-6):
            detectors[f"Otava, p {p_max:g}"] = partial(with_otava, python=python, p_max=p_max)
    table = Table("detector", f"false in 100 nights of {SERIES_OF_A_NIGHT} series")
    for kind in KINDS:
        table.add_column(f"{kind.name} 5 / 10 / 30 %")
    for name, detect in detectors.items():
        Console(stderr=True).print(f"asking {name} …")
        scored = score(detect)
        waits = [
            " / ".join(str(scored.soon[kind.name, fraction] or "-") for fraction in FRACTIONS)
            for kind in KINDS
        ]
        table.add_row(name, f"{scored.false * SERIES_OF_A_NIGHT:.0f}", *waits)
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
