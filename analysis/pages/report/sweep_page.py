"""The page of a sweep: its figures beside the paper's numbers, and every run with its result.

Like a run's page it is one self-contained file (see `page`) that loads nothing from the network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from analysis.pages.page_environment import environment
from analysis.pages.report.charts.figures import write_sweep_figures
from analysis.pages.report.charts.sweep_charts import SweepChart, convergence_charts, generic_charts
from analysis.pages.report.formatting import count_of, large, seconds, with_unit
from analysis.pages.report.page import short_commit
from analysis.pages.report.story import HeadlineNumber
from analysis.pages.report.tables import (
    EXPECTATION,
    HELD,
    VALUE,
    Column,
    PageTable,
    TableCell,
    label,
    quantity,
    table,
    text_cell,
)
from analysis.sweeps import SweepResults, SweepRunResult, read_sweep
from analysis.systems.catalog import PAPERS
from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweep import value_text
from experiments.campaigns.sweep_expectations import GroupJudgement
from experiments.campaigns.sweepdir import SweepDirectory, replay_command
from experiments.expectations import found_text
from experiments.files.whole_files import write_whole
from experiments.records.summary import WRONG_EVENT_FIGURES

SIMULATOR = "simulator"
_SECONDS, _MILLISECONDS = partial(with_unit, unit="s"), partial(with_unit, unit="ms")
PROBLEMS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class SweepVerdict:
    """The first screen's verdict on a sweep."""

    word: str
    status: str
    passed: int
    runs: int
    other_results: tuple[str, ...]  # the results other than "passed", with counts


@dataclass(frozen=True, slots=True)
class FailedSweepRun:
    """A run that did not pass: the reason, and the command that repeats it."""

    name: str
    seed: int
    verdict: str
    why: str
    replay: str


def write_sweep_report(directory: SweepDirectory) -> Path:
    """Write report.html and figures/ of a sweep. Returns the page's path. Raises as `read_sweep` does."""
    sweep = read_sweep(directory)
    charts = sweep_charts(sweep)
    write_sweep_figures(charts, directory)
    write_whole(directory.report_html, render(sweep, charts))
    return directory.report_html


def sweep_charts(sweep: SweepResults) -> tuple[SweepChart, ...]:
    """Return the plots of a sweep: the figures of its experiment's paper, or else the generic ones."""
    paper = sweep.experiment.get("paper") or {}
    builders = PAPERS.get(paper.get("document", ""), {})
    names = [str(name) for name in paper.get("figures") or ()]
    chosen = dict.fromkeys(builders[name] for name in names if name in builders)
    found = [chart for builder in chosen for chart in builder(sweep) if chart.series]
    generic = (chart for builder in (generic_charts, convergence_charts) for chart in builder(sweep))
    return tuple(found) or tuple(chart for chart in generic if chart.series)


def render(sweep: SweepResults, charts: Sequence[SweepChart]) -> str:
    """Return the page of a sweep."""
    failures = failed(sweep)
    return environment().get_template("sweep.html.j2").render(
        sweep=sweep,
        name=sweep.experiment.get("name") or sweep.record.sweep,
        description=sweep.experiment.get("description") or "",
        verdict=verdict(sweep),
        charts=charts,
        comparisons=[each for chart in charts for each in chart.comparisons],
        totals=totals(sweep),
        expected=expectations_table(sweep),
        failures=failures[:PROBLEMS_SHOWN],
        more_failures=max(0, len(failures) - PROBLEMS_SHOWN),
        runs=runs_table(sweep),
        facts=_facts(sweep),
    )  # fmt: skip


def verdict(sweep: SweepResults) -> SweepVerdict:
    """Return how many runs passed, and the verdict on the sweep as a whole."""
    runs = sweep.record.made
    passed = sum(point.verdict == "passed" for point in runs)
    kinds: list[str] = [point.verdict or ("not analysed" if point.ended else "not made") for point in runs]
    kinds += ["left out"] * (len(sweep.record.runs) - len(runs))
    other_results = tuple(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds) if kind != "passed")
    if missed := missed_text(sweep):
        return SweepVerdict("Not all held", "bad", passed, len(runs), (missed, *other_results))
    if passed == len(runs):
        return SweepVerdict("All passed", "good", passed, len(runs), other_results)
    unfinished = any(not point.ended for point in runs)
    word = "Unfinished" if unfinished else "Not all passed"
    return SweepVerdict(
        word,
        "" if unfinished and passed == len(runs) - kinds.count("not made") else "bad",
        passed,
        len(runs),
        other_results,
    )


def totals(sweep: SweepResults) -> tuple[HeadlineNumber, ...]:
    """Return the deliveries of all runs together, and the incorrect ones."""
    runs = [run for run in sweep.runs if run.figure("events", "delivered") is not None]
    if not runs:
        return ()
    delivered = sum(run.figure("events", "delivered") or 0.0 for run in runs)
    wrong = {name: sum(run.figure("events", name) or 0.0 for run in runs) for name in WRONG_EVENT_FIGURES}
    wrong_text = ", ".join(
        f"{large(value, name.replace('_', ' '))}" for name, value in wrong.items() if value
    )
    among = f"of {large(delivered, 'deliveries')} in {count_of(len(runs), 'run')}"
    if wrong_text:
        return (HeadlineNumber(wrong_text, among, "bad"),)
    return (HeadlineNumber("0", f"lost, duplicated, out of order, resurrected or corrupted {among}", "good"),)


def failed(sweep: SweepResults) -> tuple[FailedSweepRun, ...]:
    """Return the runs that were executed and did not pass, in order."""
    return tuple(
        FailedSweepRun(
            name=_values(run) or run.point.name,
            seed=run.point.seed,
            verdict=run.point.verdict or "not analysed",
            why=_why(run),
            replay=replay_command(
                str(sweep.experiment.get("name") or ""), (), run.point, sweep.record.backend
            ),
        )
        for run in sweep.runs
        if run.point in sweep.record.made and run.point.ended and run.point.verdict != "passed"
    )


def runs_table(sweep: SweepResults) -> PageTable:
    """Return a table of every run with its values and numbers."""
    axes = list(dict.fromkeys(path for run in sweep.runs for path in run.point.values))
    place = {id(run): number for number, run in enumerate(sweep.runs, 1)}
    columns = (
        quantity("run", lambda run: place[id(run)], str),
        *(_axis(axis) for axis in axes),
        quantity("seed", lambda run: run.point.seed, str),
        Column("verdict", _verdict_cell),
        quantity("events/s", "throughput_per_s", lambda rate: large(rate, ""), "at the slowest client"),
        quantity(
            "mean latency",
            lambda run: run.figure("latency", "mean_ms"),
            _MILLISECONDS,
            "until every client has an event",
        ),
        quantity("p99", lambda run: run.figure("latency", "p99_ms"), _MILLISECONDS),
        quantity(
            "wrong",
            _wrong,
            lambda events: large(events, ""),
            ", ".join(WRONG_EVENT_FIGURES).replace("_", " "),
            bad=True,
        ),
        *(_recovery_columns() if any(run.open_connections for run in sweep.runs) else ()),
        quantity("took", lambda run: run.point.duration_s, _SECONDS, "wall-clock time, analysis included"),
    )
    return table("runs", columns, sweep.runs)


def _recovery_columns() -> tuple[Column, ...]:
    """Return columns on links that failed and came back."""
    return (
        quantity(
            "flows again",
            lambda run: run.figure("convergence", "full_s"),
            _SECONDS,
            "since the last change, every stream at every client",
        ),
        quantity(
            "TCP retransmitted",
            lambda run: run.figure("convergence", "tcp_retry_s"),
            _SECONDS,
            "since the link was back",
        ),
        label(
            "given up",
            _given_up,
            "connections that were open when the link failed: since then, and by which end",
        ),
    )


def _given_up(run: SweepRunResult) -> str:
    """Return how many connections across links that came back were closed, when and by whom."""
    ended = [row for row in run.open_connections if row["ended_s"] is not None]
    count = f"{len(ended)} of {len(run.open_connections)}"
    if not ended:
        return count
    times = [row["ended_s"] - row["from_s"] for row in ended]
    low, high = seconds(min(times)), seconds(max(times))
    by = ", ".join(dict.fromkeys(f"{row['ended_by']} ({row['ended_how']})" for row in ended))
    return f"{count} after {low if low == high else f'{low} to {high}'} by {by}"


def _axis(path: str) -> Column:
    """Return the column of a swept field."""
    return label(path.rsplit(".", maxsplit=1)[-1], lambda run: value_text(run.point.values.get(path)), path)


def _verdict_cell(run: SweepRunResult) -> TableCell:
    point = run.point
    status = {"passed": "good", None: ""}.get(point.verdict, "bad")
    if point.state is RunState.SKIPPED:
        return text_cell("left out", "")
    return text_cell(point.verdict or ("not analysed" if point.ended else "not made"), status)


def _wrong(run: SweepRunResult) -> float | None:
    values = [run.figure("events", name) for name in WRONG_EVENT_FIGURES]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _why(run: SweepRunResult) -> str:
    """Return in one line why a run did not pass."""
    unmet = [e for e in run.summary.get("expectations") or () if not e.get("held")]
    lines = [f"{e['text']} (it is {found_text(e.get('value'))})" for e in unmet]
    if run.point.verdict == "invalid":
        lines += list((run.summary.get("fidelity") or {}).get("reasons") or ())[:2]
    lines += [] if lines else list(run.summary.get("problems") or ())[:2]
    return "; ".join(lines) or run.point.problem or ""


def _values(run: SweepRunResult) -> str:
    return ", ".join(f"{path.split('.')[-1]} {value_text(value)}" for path, value in run.point.values.items())


def _facts(sweep: SweepResults) -> tuple[tuple[str, str], ...]:
    record = sweep.record
    combinations = len({point.number for point in record.runs})
    entries = [
        ("Sweep", record.sweep),
        ("Runs", f"{count_of(combinations, 'combination')}, {count_of(record.repeat, 'repetition')} each"),
        ("Seeds", f"from {record.seed} on"),
        (
            "Where",
            "in virtual time" if record.backend == SIMULATOR else f"real processes, links: {record.links}",
        ),
        ("Commit", short_commit(record.commit) or ""),
        ("Outcome", record.outcome or "not ended"),
    ]
    return tuple((name, value) for name, value in entries if value)


ALL_RUNS = "all runs"


def expectations_table(sweep: SweepResults) -> PageTable | None:
    """Return each expectation with its value, for each group of runs that it applies to.

    Returns None if there are no expectations.
    """
    if not sweep.record.expectations:
        return None
    rows = (
        {"text": judged.text, "of": each.of, "value": each.value, "held": each.held}
        for judged in sweep.record.expectations
        for each in judged.groups or (GroupJudgement(judged.value, judged.held, ALL_RUNS),)
    )
    return table("expected", (EXPECTATION, label("Of", "of"), VALUE, HELD), rows)


def missed_text(sweep: SweepResults) -> str | None:
    """Return `1 of 3 expectations of all runs together did not hold`, or None if all held."""
    expectations = sweep.record.expectations
    missed = sum(not each.held for each in expectations)
    if not missed:
        return None
    return f"{missed} of {count_of(len(expectations), 'expectation')} of all runs together did not hold"
