"""What is said about a sweep: while it goes on a line for each run, and the time left; at its end, on
standard output, how many passed, which did not and how to replay them.
"""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from experiments.sweep import SweepRun, values_text
from experiments.sweepdir import PointRecord, SweepDirectory, SweepRecord, replay_command
from testbed.campaign.outcome import COLOURS, number, row
from testbed.sweeps import missed

SHOWN_MAX = 10  # of the runs that did not pass


def show_sweep(directory: SweepDirectory, record: SweepRecord, given: tuple[str, Sequence[str]]) -> None:
    """Print it. given: the experiment as the user named it, and the overrides."""
    verdict = verdict_of(record)
    row("verdict", click.style(verdict, fg=COLOURS.get(verdict), bold=True))
    row("runs", runs_text(record))
    for expectation in record.expectations:
        for text in expectation_lines(expectation):
            row("expected", text)
    for point in not_passed(record)[:SHOWN_MAX]:
        row(point.verdict or "crashed", " ".join(filter(None, [point_title(point), point.problem])))
        row("", f"replay: {replay_command(*given, point, record.place)}")
    if (more := len(not_passed(record)) - SHOWN_MAX) > 0:
        row("", f"and {more} more")
    if any(not point.ended for point in record.points):
        name, overrides = given
        words = ["cutset", "run", name, *(word for override in overrides for word in ("--set", override))]
        words += ["--seed", str(record.seed), "--repeat", str(record.repeat), "--on", record.place]
        words += ["--links", record.links, "--resume", str(directory.path)]
        row("go on with", shlex.join(words))
    if directory.report_html.exists():
        row("report", str(directory.report_html))
    row("sweep", str(directory.sweep_json))


def verdict_of(record: SweepRecord) -> str:
    """Of the whole: passed only if every run did, and what was expected of all together held."""
    if not_passed(record) or missed(record):
        return "failed"
    if any(not point.ended for point in record.points):
        return "interrupted"
    return "passed" if all(point.verdict for point in record.points) else "not analysed"


def expectation_lines(expectation: Mapping[str, Any]) -> Iterator[str]:
    """What was expected of all runs together, and each group of runs in which it did not hold."""
    groups = [group for group in expectation["groups"] if not group["held"]]
    yield f"{expectation['text']}: {_said(expectation)}"
    for group in groups[:SHOWN_MAX]:
        yield f"  {group['of']}: {_said(group)}"
    if (more := len(groups) - SHOWN_MAX) > 0:
        yield f"  and {more} more"


def _said(judged: Mapping[str, Any]) -> str:
    return f"{'held' if judged['held'] else 'NOT HELD'} ({number(judged['value'])})"


def not_passed(record: SweepRecord) -> list[PointRecord]:
    """The runs that went wrong."""
    return [
        point
        for point in record.points
        if point.outcome == "crashed" or point.verdict not in {None, "passed"}
    ]


def runs_text(record: SweepRecord) -> str:
    """`14 passed, 1 failed; 15 in all`."""
    counts = Counter(
        point.verdict or ("not analysed" if point.ended else point.outcome or "not run")
        for point in record.points
    )
    return f"{', '.join(f'{count} {kind}' for kind, count in counts.items())}; {len(record.points)} in all"


def point_line(point: PointRecord, count: int, done: int, left_s: float | None) -> str:
    """What became of a run, in a line."""
    width = len(str(count))
    parts = [point.verdict or point.problem or "ran"]
    rate, latency = (point.headline.get(key) for key in ("events_per_s", "latency_p99_ms"))
    if rate is not None:
        parts.append(f"{rate:,.0f} events/s")
    if latency is not None:
        parts.append(f"p99 {latency:,.0f} ms")
    if point.duration_s is not None:
        parts.append(f"took {duration_text(point.duration_s)}")
    if left_s is not None and done < count:
        parts.append(f"{duration_text(left_s)} left")
    return f"[{done:{width}}/{count}] {point_title(point)}: {', '.join(parts)}"


def point_title(point: PointRecord | SweepRun) -> str:
    """Its values and its seed."""
    return " ".join(filter(None, [values_text(point.values), f"seed {point.seed}"]))


def duration_text(seconds: float) -> str:
    """`12 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def seconds_left(elapsed_s: float, done: int, remaining: int) -> float | None:
    """From what those that are done took, with all that goes on at once; None before the first."""
    return elapsed_s / done * remaining if done else None
