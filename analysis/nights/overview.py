"""The morning page: did something get worse, did everything hold, what ran; then each experiment."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from analysis.charting.drawing import day_text
from analysis.nights.change_words import Link, Told
from analysis.nights.levels import Levels
from analysis.nights.places import Site, report_of, to_comparison, to_entry, to_run
from analysis.nights.reading import Entry, Past
from analysis.nights.verdicts import SIGNS, STATUS, Strip, strip
from analysis.regressions.findings import Checked, EntryVerdict, Finding, Flake, RunVerdict
from analysis.regressions.series import MEASURED, Series
from analysis.report.formatting import EN_DASH, count_of, number, percent
from analysis.report.metric_words import change_of, change_text, value_text
from analysis.report.page import short_commit

LINES_SHOWN = 4
FLAKES_SHOWN = 60
WHY_MAX = 160
_BETWEEN = "; "
"""Between reasons, as `analysis.regressions.failures` joins them."""
OVER = "over"
"""The pattern of what did not fail for a while."""
_STATUS = {"worse": "bad", "better": "good"}
_KINDS = {
    "expectation": "Failed",
    "fidelity": "Cannot be relied on",
    "crash": "Crashed",
    "harness": "Could not run",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A card of the first screen."""

    word: str
    status: str
    meaning: str
    lines: tuple[Link, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """A number of tonight. change: from what was usual."""

    what: str
    text: str
    change: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A run of tonight as a sign."""

    sign: str
    status: str
    title: str
    address: str


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An experiment tonight."""

    name: str
    address: str
    marks: tuple[Mark, ...]
    values: tuple[Value, ...]
    strip: Strip


@dataclass(frozen=True, slots=True)
class SuiteRows:
    """A suite's last night."""

    name: str
    night: str
    rows: tuple[EntryRow, ...]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A run that did not hold."""

    kind: str
    name: str
    why: str
    address: str
    report: str | None
    comparison: str | None
    short: str


def worse_verdict(worse: Sequence[Told], still: int, nights: Sequence[Checked]) -> Verdict:
    """Did something get worse? still: how many numbers have been worse for some nights.

    Of an experiment that has no run to rely on tonight nobody knows.
    """
    looked = f"{number(sum(night.series for night in nights))} numbers were looked at."
    entries = [entry for night in nights for entry in night.verdicts]
    unknown = sum(not any(run.verdict in MEASURED for run in entry.runs) for entry in entries)
    if unknown and not worse:
        doubt = (
            f"{number(unknown)} of {count_of(len(entries), 'experiment')} had no run that can be relied on."
        )
        return Verdict("Nothing known" if unknown == len(entries) else "Nothing seen", "", doubt)
    if not worse:
        known = (
            f"{number(still)} of earlier nights {'is' if still == 1 else 'are'} still worse. "
            if still
            else ""
        )
        return Verdict("Nothing new" if still else "Nothing", "good", f"{known}{looked}")
    experiments = len({told.entry for told in worse})
    lines = tuple(Link(told.entry_link, told.short) for told in worse[:LINES_SHOWN])
    meaning = (
        f"{'It is' if len(worse) == 1 else 'They are'} in {count_of(experiments, 'experiment')}. {looked}"
    )
    return Verdict(count_of(len(worse), "number"), "bad", meaning, lines, max(0, len(worse) - LINES_SHOWN))


def held_verdict(checked: Sequence[Checked], wrong: Sequence[Wrong]) -> Verdict:
    """Did everything hold?"""
    runs = [run for one in checked for entry in one.verdicts for run in entry.runs]
    passed = sum(run.verdict == "passed" for run in runs)
    meaning = f"{passed} of {count_of(len(runs), 'run')} passed."
    if not runs:
        return Verdict("Nothing ran", "bad", "The night has no runs.")
    if not wrong:
        return Verdict("Yes", "good", meaning)
    lines = tuple(Link(one.address, one.short) for one in wrong[:LINES_SHOWN])
    return Verdict(
        f"{number(len(runs) - passed)} did not", "bad", meaning, lines, max(0, len(wrong) - LINES_SHOWN)
    )


def brief(why: str, reasons: int = 1) -> str:
    """The first reasons of those that stand behind each other, and how many there are besides."""
    told = why.split(_BETWEEN)
    text = _BETWEEN.join(told[:reasons])
    text = text if len(text) <= WHY_MAX else text[: WHY_MAX - 1].rstrip() + "…"
    return text if len(told) <= reasons else f"{text} (and {number(len(told) - reasons)} more)"


def wrongs(checked: Checked, past: Past, site: Site) -> list[Wrong]:
    """Tonight's runs that did not pass; those of an experiment that failed in one way are one."""
    alike: dict[tuple[str, str], list[RunVerdict]] = defaultdict(list)
    for entry in checked.verdicts:
        for run in entry.runs:
            if run.failure is not None:
                alike[entry.entry, _KINDS[run.failure.value]].append(run)
    return [_wrong(key, runs, past, site) for key, runs in alike.items()]


def _wrong(key: tuple[str, str], runs: Sequence[RunVerdict], past: Past, site: Site) -> Wrong:
    entry, kind = key
    why = runs[0].why
    row = past.run(runs[0].run)
    times = f", {len(runs)} times" if len(runs) > 1 else f", repeat {runs[0].repeat}"
    return Wrong(
        kind,
        entry + times,
        brief(why, 2),
        to_run(runs[0].run),
        report_of(row, site.index) if row else None,
        to_comparison(runs[0].run) if site.comparison(runs[0].run).exists() else None,
        f"{entry}: {kind[:1].lower() + kind[1:]}{times if len(runs) > 1 else ''}, {brief(why)}",
    )


def suite_rows(checked: Checked, entries: Sequence[Entry], usual: Levels) -> SuiteRows:
    """Every experiment of a suite, also those that did not run tonight; those with something to say first."""
    tonight = {verdict.entry: verdict for verdict in checked.verdicts}
    fresh = {(f.entry, f.metric): f for f in checked.findings if f.new or f in checked.worse}
    worse = {finding.entry for finding in checked.worse}

    def calm(entry: Entry) -> tuple[bool, bool]:
        verdict = tonight.get(entry.name)
        return entry.name not in worse, verdict is not None and verdict.worst == "passed"

    rows = tuple(
        EntryRow(
            entry.name,
            to_entry(entry.suite, entry.name),
            _marks(tonight.get(entry.name)),
            _values(entry, checked.night, usual, fresh),
            strip(entry, checked.night),
        )
        for entry in sorted(entries, key=calm)
    )
    return SuiteRows(entries[0].suite, day_text(date.fromisoformat(checked.night)), rows)


def _marks(verdict: EntryVerdict | None) -> tuple[Mark, ...]:
    if verdict is None:
        return ()
    return tuple(
        Mark(
            SIGNS[run.verdict],
            STATUS[run.verdict],
            ": ".join(filter(None, [run.verdict, brief(run.why)])),
            to_run(run.run),
        )
        for run in verdict.runs
    )


def _values(
    entry: Entry, night: str, usual: Levels, fresh: Mapping[tuple[str, str], Finding]
) -> tuple[Value, ...]:
    by_metric = {series.metric: series for series in entry.series}
    switches = [metric for metric in by_metric if metric.endswith(".switch_s")]
    slowest = max(switches, key=lambda metric: float(np.median(by_metric[metric].nights.medians)), default="")
    wanted = (
        ("Throughput", "throughput.events_per_s"),
        ("Latency p95", "latency.p95_ms"),
        ("Recovery", slowest),
    )
    return tuple(_value(what, by_metric.get(metric), night, usual, fresh) for what, metric in wanted)


def _value(
    what: str, series: Series | None, night: str, usual: Levels, fresh: Mapping[tuple[str, str], Finding]
) -> Value:
    if series is None or series.dates[-1] != night:
        return Value(what, EN_DASH)
    value = float(series.nights.medians[-1])
    level = usual.get((series.suite, series.entry, series.metric), {}).get(night)
    finding = fresh.get((series.entry, series.metric))
    return Value(
        what,
        value_text(value, series.unit),
        change_text(change_of(level, value)),
        _STATUS[finding.direction] if finding else "",
    )


def flake_rows(flakes: Sequence[Flake]) -> list[dict[str, Any]]:
    """What fails now and then, the most pressing first; bars go to the largest rate that there may be."""
    shown = [flake for flake in flakes if flake.pattern != OVER][:FLAKES_SHOWN]
    full = max((flake.interval[1] for flake in shown), default=1.0) or 1.0
    return [
        {
            "entry": flake.entry,
            "address": to_entry(flake.suite, flake.entry),
            "text": brief(flake.text),
            "all": flake.text,
            "rate": flake.rate,
            "rate_text": percent(flake.rate),
            "interval": f"{percent(flake.interval[0])} to {percent(flake.interval[1])}",
            "rate_share": round(100 * flake.rate / full, 1),
            "low_share": round(100 * flake.interval[0] / full, 1),
            "width_share": round(100 * (flake.interval[1] - flake.interval[0]) / full, 1),
            "failed": flake.failed,
            "counts": f"{flake.failed} of {flake.runs}",
            "kind": flake.failure.value,
            "pattern": flake.pattern,
            "last": flake.last_failed_night,
            "last_address": to_run(flake.run),
        }
        for flake in shown
    ]


def headlines(checked: Sequence[Checked], past: Past) -> list[dict[str, str]]:
    """What ran: how much, on what."""
    names = [run.run for one in checked for entry in one.verdicts for run in entry.runs]
    wanted = set(names)
    runs = [run for run in past.runs if run["run"] in wanted]
    hours = sum(run["duration_s"] for run in runs) / 3600
    took = f"{hours:.1f}\u00a0h" if hours >= 1 else f"{hours * 60:.0f}\u00a0min"
    commits = list(dict.fromkeys(short_commit(run["commit"]) or "" for run in runs if run["commit"]))
    nights = len({run["night"] for run in past.runs})
    found = [
        (str(len(runs)), f"runs of {count_of(sum(len(one.verdicts) for one in checked), 'experiment')}"),
        (took, "of running, analysis not counted"),
        (
            commits[-1].split(",")[0] if commits else EN_DASH,
            "commit" if len(commits) < 2 else f"and {len(commits) - 1} more commits",
        ),
        (str(nights), "nights in the history"),
    ]
    return [{"value": value, "meaning": meaning} for value, meaning in found]
