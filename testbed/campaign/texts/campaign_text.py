"""Texts about the runs of a campaign: a line for each run, counts of the results, and durations."""

from collections import Counter
from typing import Any

from experiments.campaigns.campaign import CampaignRecord, CampaignRun, RunState


def run_line(run: CampaignRun, ended: int, count: int, left_s: float | None = None) -> str:
    """Return the result of a run as one line.

    ended: how many of `count` runs have ended. left_s: what the others are expected to take, if known.
    """
    parts = [result_text(run)]
    if (rate := run.headline.events_per_s) is not None:
        parts.append(f"{rate:,.0f} events/s")
    if (latency := run.headline.latency_p99_ms) is not None:
        parts.append(f"p99 {latency:,.0f} ms")
    if run.duration_s:
        parts.append(f"took {duration_text(run.duration_s)}")
    if ended < count and left_s is not None:
        parts.append(f"about {duration_text(left_s)} left")
    return f"{position(ended, count)} {title(run)}: {', '.join(parts)}"


def title(run: CampaignRun) -> str:
    """Return the run's label and seed."""
    return " ".join(filter(None, [run.label, f"seed {run.seed}"]))


def position(number: int, count: int) -> str:
    """Return the position of a run, as `[ 3/19]`."""
    return f"[{number:{len(str(count))}}/{count}]"


def result_text(run: CampaignRun) -> str:
    """Return the verdict with its reason, or why there is no verdict."""
    if run.state is RunState.SKIPPED:
        return f"left out ({run.problem})"
    if run.failure is None and run.problem is None:
        return run.verdict or ("ran" if run.state is RunState.DONE else str(run.state))
    allowed = " (allowed)" if run.failure is not None and run.allow_failure else ""
    problem = f": {run.problem}" if run.problem else ""
    return f"{run.verdict or run.failure or run.state}{allowed}{problem}"


def runs_text(record: CampaignRecord[Any]) -> str:
    """Return the counts of the results, as `14 passed, 1 failed; 15 in all`."""
    counts = Counter(_counted_as(run) for run in record.runs)
    return f"{', '.join(f'{count} {kind}' for kind, count in counts.items())}; {len(record.runs)} in all"


def _counted_as(run: CampaignRun) -> str:
    if run.verdict is not None:
        return run.verdict
    if not run.ended:
        return "not run"
    return {RunState.DONE: "not analysed", RunState.SKIPPED: "left out"}.get(run.state, "broken")


def duration_text(seconds: float) -> str:
    """Return a duration as `12 s`, `3 min 05 s` or `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
