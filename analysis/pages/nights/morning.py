"""Contents of the morning page. Its first screen covers only the suites that ran tonight.

Suites, and experiments of suites, that have not run for long are left out: their old results neither affect
the verdict nor count. Their pages stay.

Cards on the first screen answer: did something get worse, did everything hold, what ran.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from analysis.history.regressions.findings import NightFindings, RegressionFinding
from analysis.history.regressions.series import MEASURED
from analysis.history.regressions.tonight import NIGHTS_MIN
from analysis.pages.nights import overview
from analysis.pages.nights.change_words import FindingText, PageLink
from analysis.pages.nights.night_reader import EarlierNights, Levels, NightSuiteEntry
from analysis.pages.nights.overview import FailedRun
from analysis.pages.nights.site_paths import Site
from analysis.pages.nights.verdicts import STRIP_NIGHTS
from analysis.pages.report.formatting import EN_DASH, count_of, day_text, number
from analysis.pages.report.page import short_commit
from topologies.first_texts import listed

TONIGHT_DAYS: Final = 1
"""Largest age of a suite's last night, relative to the newest, to count as tonight.

Nights begin before midnight and after it.
"""
GONE_DAYS: Final = STRIP_NIGHTS
"""Days without a run after which an experiment no longer belongs to its suite."""
STILL_DAYS: Final = 30
"""Age up to which a lasting deterioration is shown."""
FINDINGS_SHOWN: Final = 6
EARLIER_SHOWN: Final = 100
LINES_SHOWN = 4
NAMES_SHOWN = 6


def morning_content(
    past: EarlierNights,
    site: Site,
    checked: Mapping[str, NightFindings],
    usual: Levels,
    words: Mapping[int, FindingText],
    *,
    left_out: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Return the values that the template uses.

    checked: the last night of every suite. words: of every finding, by its id. left_out: titles of the runs
    skipped for lack of time, by suite.
    """
    newest = max(night.night for night in checked.values())
    tonight = {
        suite: night for suite, night in checked.items() if night.night >= _before(newest, TONIGHT_DAYS)
    }
    nights = list(tonight.values())
    alive = [entry for entry in past.entries.values() if _is_alive(entry, tonight)]
    wrong = [run for night in nights for run in overview.failed_runs(night, past, site)]
    changes = _changes(nights, _before(newest, STILL_DAYS), words)
    earlier = max((len(entry.nights) - 1 for entry in alive), default=0)
    titles = [title for of_suite in left_out.values() for title in of_suite]
    return changes | {
        "night": day_text(date.fromisoformat(newest)),
        "described": ", ".join(dict.fromkeys(entry.experiment for entry in alive)),
        "verdict": worse_verdict(changes["worse"], len(changes["still"]), nights, earlier),
        "ran": held_verdict(nights, wrong, titles),
        "headlines": headlines(nights, past),
        "shown": FINDINGS_SHOWN,
        "failed": sorted(wrong, key=lambda one: one.allowed),
        "suites": [
            overview.suite_rows(night, [entry for entry in alive if entry.suite == suite], usual, site)
            for suite, night in tonight.items()
        ],
        "strip_nights": STRIP_NIGHTS,
        "problems": past.problems,
    }


def _is_alive(entry: NightSuiteEntry, tonight: Mapping[str, NightFindings]) -> bool:
    """Return whether an entry still belongs to a suite that ran tonight."""
    night = tonight.get(entry.suite)
    return night is not None and entry.last > _before(night.night, GONE_DAYS)


def _changes(
    nights: Sequence[NightFindings], recently: str, words: Mapping[int, FindingText]
) -> dict[str, list[FindingText]]:
    """Return the findings to show: new worse ones, lasting ones, better ones, and all earlier ones."""

    def texts(findings: Iterable[RegressionFinding]) -> list[FindingText]:
        return [words[id(finding)] for finding in findings]

    findings = [found for night in nights for found in night.findings]
    worse = [found for night in nights for found in night.worse]
    now = {id(found) for found in worse}
    older = [found for found in findings if not found.new and id(found) not in now]
    older.sort(key=lambda found: found.first_bad_night, reverse=True)
    still = [found for found in older if found.direction == "worse" and found.first_bad_night >= recently]
    return {
        "worse": texts(worse),
        "better": texts(found for found in findings if found.new and found.direction == "better"),
        "still": texts(still),
        "older": texts([found for found in older if found not in still][:EARLIER_SHOWN]),
    }


def _before(night: str, days: int) -> str:
    return (date.fromisoformat(night) - timedelta(days=days)).isoformat()


@dataclass(frozen=True, slots=True)
class MorningVerdict:
    """A card's answer. status: good, bad, or neither."""

    word: str
    status: str
    meaning: str
    lines: tuple[PageLink, ...] = ()
    more: int = 0


def worse_verdict(
    worse: Sequence[FindingText], still: int, nights: Sequence[NightFindings], earlier: int
) -> MorningVerdict:
    """Return the answer to "did something get worse?".

    still: number of metrics that have been worse for some nights. earlier: number of earlier nights for
    comparison. An experiment without a valid run tonight is unknown, unless it may fail.
    """
    looked = f"{number(sum(night.series for night in nights))} numbers were checked."
    entries = [entry for night in nights for entry in night.verdicts]
    unknown = sum(not any(run.verdict in MEASURED or run.allowed for run in entry.runs) for entry in entries)
    if unknown and not worse:
        doubt = f"{number(unknown)} of {count_of(len(entries), 'experiment')} had no valid run."
        return MorningVerdict("Nothing known" if unknown == len(entries) else "Nothing seen", "", doubt)
    if not worse and earlier < NIGHTS_MIN:
        enough = f"{count_of(earlier, 'earlier night')}; with {NIGHTS_MIN} a night can be compared with them."
        return MorningVerdict("Too early to tell", "", f"The history has {enough}")
    if not worse:
        known = (
            f"{number(still)} of earlier nights {'is' if still == 1 else 'are'} still worse. "
            if still
            else ""
        )
        return MorningVerdict("Nothing new" if still else "Nothing", "good", f"{known}{looked}")
    experiments = len({text.entry for text in worse})
    lines = tuple(PageLink(text.entry_link, text.short) for text in worse[:LINES_SHOWN])
    meaning = (
        f"{'It is' if len(worse) == 1 else 'They are'} in {count_of(experiments, 'experiment')}. {looked}"
    )
    return MorningVerdict(
        count_of(len(worse), "number"), "bad", meaning, lines, max(0, len(worse) - LINES_SHOWN)
    )


def held_verdict(
    checked: Sequence[NightFindings], wrong: Sequence[FailedRun], left_out: Sequence[str]
) -> MorningVerdict:
    """Return the answer to "did everything hold?". left_out: titles of the runs skipped for lack of time."""
    runs = [run for one in checked for entry in one.verdicts for run in entry.runs]
    passed = sum(run.verdict == "passed" for run in runs)
    allowed = sum(run.failure is not None and run.allowed for run in runs)
    failed = len(runs) - passed - allowed
    if not runs and not left_out:
        return MorningVerdict("Nothing ran", "bad", "The night has no runs.")
    sentences = [f"{passed} of {count_of(len(runs), 'run')} passed."]
    if allowed:
        sentences.append(f"{count_of(allowed, 'failure')} {'is' if allowed == 1 else 'are'} allowed.")
    if left_out:
        sentences.append(
            f"{number(len(left_out))} left out for lack of time: {listed(left_out, NAMES_SHOWN)}."
        )
    meaning = " ".join(sentences)
    if failed:
        urgent = [one for one in wrong if not one.allowed]
        lines = tuple(PageLink(one.address, one.short) for one in urgent[:LINES_SHOWN])
        more = max(0, len(urgent) - LINES_SHOWN)
        return MorningVerdict(f"{number(failed)} did not", "bad", meaning, lines, more)
    if left_out:
        return MorningVerdict(f"{number(len(left_out))} left out", "", meaning)
    return MorningVerdict("Yes", "good", meaning)


def headlines(checked: Sequence[NightFindings], past: EarlierNights) -> list[dict[str, str]]:
    """Return what ran: how much, and which commits."""
    names = [run.run for one in checked for entry in one.verdicts for run in entry.runs]
    wanted = set(names)
    runs = [run for run in past.runs if run["run"] in wanted]
    hours = sum(run["duration_s"] for run in runs) / 3600
    took = f"{hours:.1f}\u00a0h" if hours >= 1 else f"{hours * 60:.0f}\u00a0min"
    commits = list(dict.fromkeys(short_commit(run["commit"]) or "" for run in runs if run["commit"]))
    nights = len({run["night"] for run in past.runs})
    found = [
        (str(len(runs)), f"runs of {count_of(sum(len(one.verdicts) for one in checked), 'experiment')}"),
        (took, "of run time, without analysis"),
        (
            commits[-1].split(",")[0] if commits else EN_DASH,
            "commit" if len(commits) < 2 else f"and {len(commits) - 1} more commits",
        ),
        (str(nights), f"{'night' if nights == 1 else 'nights'} in the history"),
    ]
    return [{"value": value, "meaning": meaning} for value, meaning in found]
