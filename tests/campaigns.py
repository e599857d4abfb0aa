"""Records of sweeps and nights as if runs had been made, written by hand."""

from typing import Any

from experiments.campaigns.nights import NightRecord, NightRun, run_title
from experiments.campaigns.sweepdir import SweepRecord, SweepRun


def night_run(entry: str = "cut", repetition: int = 0, seed: int = 11, **fields: Any) -> NightRun:
    """Return a run of a night; default: a pending one."""
    return NightRun(
        name=run_title(entry, repetition),
        entry=entry,
        repetition=repetition,
        seed=seed,
        **{"experiment": "link-failure", "backend": "local"} | fields,
    )


def night_record(*runs: NightRun, **fields: Any) -> NightRecord:
    """Return the record of a night of the suite `quick` with these runs."""
    usual = {"night": "2026-11-21", "suite": "quick", "digest": "digest", "commit": None}
    return NightRecord(runs=runs, **usual | {"budget_s": 600.0, "started_ns": 1_000} | fields)


def sweep_record(*runs: SweepRun, **fields: Any) -> SweepRecord:
    """Return the record of a sweep with these runs."""
    usual = {"sweep": "tiny", "experiment": {}, "backend": "local", "links": "auto", "seed": 7, "repeat": 1}
    return SweepRecord(
        runs=runs, **usual | {"digest": "digest", "commit": None, "started_ns": 1_000} | fields
    )
