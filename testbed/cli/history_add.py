"""`cutset history add`: what the history keeps of a run that no night made."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from experiments.nights import night_of

if TYPE_CHECKING:
    from analysis.history import History, RunRecord
    from experiments.rundir import RunDirectory


def record(
    history: "History", run: "RunDirectory", suite: str, entry: str | None, night: str | None
) -> "RunRecord":
    """The run's record: by default of the night in which it started, as the next repeat of its entry.

    Raises InputError if run.json cannot be read.
    """
    from dataclasses import replace

    from analysis.history import Where, record_of

    kept = record_of(run, night=night or _DATE, suite=suite, entry=entry or "", repeat=0, settings={})
    started = night_of(datetime.fromtimestamp(kept.started_ns / 1e9, UTC)).isoformat()
    kept = replace(kept, night=night or started, entry=entry or kept.experiment or run.name)
    others = history.runs(Where(suite=suite, entry=kept.entry, since=kept.night, until=kept.night))
    return replace(kept, repeat=max(others["repeat"].to_pylist(), default=-1) + 1)


_DATE = "1970-01-01"  # until the run says when it started
