"""Tonight's verdicts, entry by entry, and when each was last fine."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.regressions.failures import failure_of, why
from analysis.regressions.findings import EntryVerdict, RunVerdict

Row = Mapping[str, Any]
Kept = Mapping[tuple[str, str], Sequence[tuple[str, bool]]]


def verdicts_of(runs: Sequence[Row], expectations: Kept, night: str) -> list[EntryVerdict]:
    """Each entry that ran tonight, in the order in which they began.

    runs: rows of the table `runs`, oldest first. expectations: by (night, run) each text and whether it held.
    """
    tonight: dict[tuple[str, str], list[Row]] = {}
    before: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for run in runs:
        key = run["suite"], run["entry"]
        if run["night"] == night:
            tonight.setdefault(key, []).append(run)
        else:
            before.setdefault(key, {}).setdefault(run["night"], []).append(run)
    entries = sorted(tonight.items(), key=lambda item: min(run["started_ns"] for run in item[1]))
    return [_entry(mine, before.get(key, {}), expectations) for key, mine in entries]


def _entry(mine: Sequence[Row], before: Mapping[str, Sequence[Row]], expectations: Kept) -> EntryVerdict:
    good = [
        night for night, runs in sorted(before.items()) if all(run["verdict"] == "passed" for run in runs)
    ]
    return EntryVerdict(
        suite=mine[0]["suite"],
        entry=mine[0]["entry"],
        experiment=mine[0]["experiment"],
        runs=tuple(_run(run, expectations) for run in mine),
        last_good_night=good[-1] if good else None,
        last_good_runs=tuple(run["run"] for run in before[good[-1]]) if good else (),
    )


def _run(run: Row, expectations: Kept) -> RunVerdict:
    missed = [text for text, held in expectations.get((run["night"], run["run"]), ()) if not held]
    return RunVerdict(
        run=run["run"],
        path=run["path"],
        repeat=run["repeat"],
        verdict=run["verdict"],
        failure=failure_of(run, missed),
        why=why(run, missed),
        allowed=run["allow_failure"],
    )
