"""Which detector finds planted changes, how soon, and how often it errs: docs/nightly.md's table.

    python -m tests.bench.simulated.detectors [--otava PYTHON]

Every detector sees the same series, a value a night, and is asked again as nights go on. Apache Otava needs
an older NumPy than Cutset, so it is asked in an environment of its own, whose interpreter is given:

    python -m venv /tmp/otava && /tmp/otava/bin/pip install apache-otava
    python -m tests.bench.simulated.detectors --otava /tmp/otava/bin/python
"""

import argparse
import contextlib
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import ruptures
from rich.console import Console
from rich.table import Table

from analysis.history.regressions.change_points import change_points
from analysis.history.regressions.checking import WRONG_MAX
from analysis.history.regressions.series import Nights
from analysis.history.regressions.tonight import departure
from tests.analysis.history.regressions.noise import KINDS, Kind, nights, until

Detector = Callable[[Sequence[Nights]], list[list[int]]]
"""From series to the places of their change points."""

SERIES_OF_A_NIGHT = 400
QUIET, PLANTED_IN = 30, 9
BEFORE = 120
ASKED_QUIET = range(5, 101, 5)
ASKED_PLANTED = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60)
"""After how many nights detectors are asked."""
FRACTIONS = (0.05, 0.10, 0.30)
REPEATS = (3, 1)
NEAR = 5
"""A change point counts as found within this many nights of its place."""
OTAVA = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    p, series = json.loads(line)
    found = [[int(c.index) for c in compute_change_points(s, window_len=50, max_pvalue=p)[0]] for s in series]
    print(json.dumps(found), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Score:
    """false: change points in quiet series, a series and 100 nights, by runs a night. soon: for each kind of
    noise and size of change, after how many nights half of the series showed it, None if they never did."""

    false: dict[int, float]
    soon: dict[tuple[str, float], int | None]


def with_ranks(series: Sequence[Nights], *, tonight: bool) -> list[list[int]]:
    """Cutset's own, as sure as it must be among a night's series. tonight: look at the last night, too."""
    doubt_max = WRONG_MAX / (2 * SERIES_OF_A_NIGHT)
    found = []
    for each in series:
        shifts = change_points(each.medians)
        places = [shift.at for shift in shifts if shift.p <= doubt_max]
        departed = departure(each, shifts[-1].at if shifts else 0, 0.0) if tonight else None
        if departed is not None and departed.p <= doubt_max:
            places.append(departed.since)
        found.append(places)
    return found


def with_ruptures(series: Sequence[Nights], kernel: str, penalty: float) -> list[list[int]]:
    """ruptures alone. penalty: times the logarithm of the number of nights."""
    found = []
    for each in (known.medians for known in series):
        steps = np.abs(np.diff(each))
        scaled = (each - np.median(each)) / (1.4826 * np.median(steps) / np.sqrt(2))
        search = ruptures.KernelCPD(kernel=kernel, min_size=2).fit(scaled)
        found.append([int(at) for at in search.predict(pen=penalty * np.log(each.size))[:-1]])
    return found


def with_otava(series: Sequence[Nights], otava: subprocess.Popen[str], p_max: float) -> list[list[int]]:
    """Apache Otava, in the process that has it."""
    assert otava.stdin is not None
    assert otava.stdout is not None
    otava.stdin.write(json.dumps([p_max, [each.medians.tolist() for each in series]]) + "\n")
    otava.stdin.flush()
    found: list[list[int]] = json.loads(otava.stdout.readline())
    return found


def score(detect: Detector) -> Score:
    """Ask a detector again and again of quiet series, and of such with a change."""
    soon = {(kind.name, fraction): _soon(detect, kind, fraction) for kind in KINDS for fraction in FRACTIONS}
    return Score({repeat: _false(detect, repeat) for repeat in REPEATS}, soon)


def _false(detect: Detector, repeat: int) -> float:
    """How many changes a quiet series shows in 100 nights."""
    false = 0
    for kind in KINDS:
        for number in range(QUIET):
            rng = np.random.default_rng([number, 1])
            quiet = nights(kind, BEFORE + max(ASKED_QUIET), rng, repeat=repeat)
            seen: list[int] = []
            for found in detect([until(BEFORE + night, quiet) for night in ASKED_QUIET]):
                seen += [at for at in found if not any(abs(at - other) <= NEAR for other in seen)]
            false += len(seen)
    return false / (QUIET * len(KINDS))


def _soon(detect: Detector, kind: Kind, fraction: float) -> int | None:
    """After how many nights half of the series showed their change."""
    waits = []
    for number in range(PLANTED_IN):
        rng = np.random.default_rng([number, 2])
        planted = nights(kind, BEFORE + max(ASKED_PLANTED), rng, worse_from=BEFORE, fraction=fraction)
        found = detect([until(BEFORE + night, planted) for night in ASKED_PLANTED])
        near = (any(abs(at - BEFORE) <= NEAR for at in each) for each in found)
        waits.append(
            next((night for night, is_near in zip(ASKED_PLANTED, near, strict=True) if is_near), None)
        )
    return sorted(waits, key=lambda wait: np.inf if wait is None else wait)[PLANTED_IN // 2]


def main() -> None:
    """Ask all of them and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulated.detectors")
    parser.add_argument("--otava", type=Path, metavar="PYTHON", help="an interpreter that has apache-otava")
    python = parser.parse_args().otava
    detectors: dict[str, Detector] = {
        "Cutset's, with tonight": partial(with_ranks, tonight=True),
        "Cutset's change points": partial(with_ranks, tonight=False),
        "ruptures, linear kernel, 3 log n": partial(with_ruptures, kernel="linear", penalty=3.0),
        "ruptures, linear kernel, 6 log n": partial(with_ruptures, kernel="linear", penalty=6.0),
        "ruptures, rbf kernel, 1 log n": partial(with_ruptures, kernel="rbf", penalty=1.0),
    }
    with contextlib.ExitStack() as stack:
        if python is not None:
            pipe = subprocess.PIPE
            otava = stack.enter_context(
                subprocess.Popen([python, "-c", OTAVA], stdin=pipe, stdout=pipe, text=True)
            )
            for p_max in (1e-3, 1e-4, 1e-6):
                detectors[f"Otava, p {p_max:g}"] = partial(with_otava, otava=otava, p_max=p_max)
        _show(detectors)


def _show(detectors: dict[str, Detector]) -> None:
    table = Table("detector", *(f"false, {repeat} a night" for repeat in REPEATS))
    for kind in KINDS:
        table.add_column(f"{kind.name} 5 / 10 / 30 %")
    for name, detect in detectors.items():
        Console(stderr=True).print(f"asking {name} …")
        scored = score(detect)
        waits = [
            " / ".join(str(scored.soon[kind.name, fraction] or "-") for fraction in FRACTIONS)
            for kind in KINDS
        ]
        false = [f"{scored.false[repeat] * SERIES_OF_A_NIGHT:.0f}" for repeat in REPEATS]
        table.add_row(name, *false, *waits)
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
