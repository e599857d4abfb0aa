"""Measure how many planted defects (`tests/hunt`) `cutset hunt` finds, after what time, with how many faults.

By default each of about forty defects gets ten minutes. Environment variables change this: CUTSET_HUNT_S, the
seconds per defect; CUTSET_HUNT_MUTANTS, names separated by commas; CUTSET_HUNT_REPLAYS, the number of replays
of each finding on real processes. Findings that also fail without the defect do not count. Held-out defects
have rows of their own.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.backend_names import LOCAL, SIMULATOR
from experiments.child_python import python_command
from experiments.hunting.case_experiment import hunt_base
from experiments.loader import load_experiment
from testbed.campaign.hunting.counts import read_counts
from testbed.campaign.hunting.worker import begin
from tests.bench.rows import Row, row
from tests.hunt.planted import Mutant, mutants, planted_copy, planted_environment

EXPERIMENTS = {"sprinkler": "nemesis", "scribe": "scribe-nemesis", "meghdoot": "meghdoot-nemesis"}
BUDGET_S = float(os.environ.get("CUTSET_HUNT_S", "600"))
REPLAYS = int(os.environ.get("CUTSET_HUNT_REPLAYS", "3"))
FEW = 3
"""The largest number of faults that nine of ten findings should have."""
GRACE_S = 600.0
"""Time for shrinking after the budget."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result for one defect. after_s: time until it was found, or None. faults: those left. broke: the
    number of replays on real processes with a breach; None without replays.
    """

    mutant: Mutant
    after_s: float | None
    faults: int | None = None
    broke: int | None = None


def measure() -> list[Row]:
    """Return the rows for `make bench`."""
    return list(_rows(list(_found())))


def _found() -> Iterator[Result]:
    asked = os.environ.get("CUTSET_HUNT_MUTANTS")
    names = asked.split(",") if asked else [mutant.name for mutant in mutants()]
    for mutant in mutants():
        if mutant.name not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="cutset-bench-") as folder:
            copy = planted_copy(mutant, Path(folder) / "copy")
            result = _hunted(mutant, copy, Path(folder) / "hunt")
        sys.stderr.write(f"  {mutant.system} {mutant.name}: {_said(result)}\n")
        yield result


def _said(result: Result) -> str:
    if result.after_s is None:
        return "not found"
    replayed = "" if result.broke is None else f", broke in {result.broke} of {REPLAYS} on real processes"
    return f"{result.after_s:.0f} s, {result.faults} faults{replayed}"


def _hunted(mutant: Mutant, copy: Path, out: Path) -> Result:
    options = ["--for", f"{BUDGET_S:g}s", "--findings", "1", "-o", str(out)]
    seen: set[Path] = set()
    while True:  # until the budget is over or a finding needs the planted defect
        _hunt(copy, EXPERIMENTS[mutant.system], *options)
        found = set(out.glob("findings/*/finding.json")) - seen
        if not found:
            return Result(mutant, None)
        seen |= found
        for finding in sorted(found):
            content = json.loads(finding.read_text())
            if _breaks_here(EXPERIMENTS[mutant.system], content):
                sys.stderr.write(f"  {mutant.name}: breaks without the defect, too: {content['said']}\n")
                sys.stderr.write(f"  {json.dumps(content['case'])}\n")
                continue
            broke = _replayed(copy, finding.parent) if REPLAYS else None
            return Result(mutant, content["after_s"], len(content["case"]["disturbances"]), broke)


def _breaks_here(experiment: str, finding: dict[str, Any]) -> bool:
    """Return whether a finding has the same breach in the unmodified code."""
    base = hunt_base(load_experiment(experiment))
    answer = begin({"experiment": base.to_json(), "build": None, "modules": [], "place": SIMULATOR})
    broken = answer({"do": "tried", "case": finding["case"]}).get("violations", ())
    return any(each["kind"] == finding["violation"]["kind"] for each in broken)


def _replayed(copy: Path, finding: Path) -> int:
    """Replay a finding on real processes of a copy; return the number of runs that broke a promise."""
    _hunt(copy, "--replay", str(finding), "--times", str(REPLAYS))
    return read_counts(finding)[LOCAL].broke


def _hunt(copy: Path, *arguments: str) -> None:
    subprocess.run(
        python_command("testbed.cli.main", "hunt", *arguments),
        cwd=copy,
        env=planted_environment(copy),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=BUDGET_S + GRACE_S,
        check=False,
    )


def _rows(results: Sequence[Result]) -> Iterator[Row]:
    for held_out in (False, True):
        some = [each for each in results if each.mutant.is_held_out is held_out]
        if not some:
            continue
        found = [each for each in some if each.after_s is not None]
        what = f"{'held-out defects' if held_out else 'defects'}, {BUDGET_S:g} s each"
        share = 7 / 10 if held_out else 25 / 30
        yield row(f"{what}, found of {len(some)}", len(found), "", share * len(some))
        if not found:
            continue
        times = [each.after_s for each in found if each.after_s is not None]
        yield row(f"{what}, median time", statistics.median(times), "s")
        few = sum(1 for each in found if each.faults is not None and each.faults <= FEW)
        yield row(f"{what}, at most {FEW} faults after shrinking", few / len(found), "of 1", 0.9)
        replayed = [each.broke for each in found if each.broke is not None]
        if replayed:
            yield row(
                f"{what}, broke on real processes in one of {REPLAYS} runs or more",
                sum(map(bool, replayed)) / len(replayed),
                "of 1",
                0.5,
            )
