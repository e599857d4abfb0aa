"""What the morning page says, and of what: its first screen is of the suites that ran tonight alone.

Suites, and experiments of suites, that have not run for long stand below with their age: what they did then
is no news, and must neither colour the page nor count.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from analysis.history.regressions.findings import Checked, Finding
from analysis.pages.nights import cards, overview
from analysis.pages.nights.change_words import Told
from analysis.pages.nights.levels import Levels
from analysis.pages.nights.places import Site
from analysis.pages.nights.reading import Entry, Past
from analysis.pages.nights.verdicts import STRIP_NIGHTS
from analysis.pages.report.formatting import day_text

TONIGHT_DAYS: Final = 1
"""A suite ran tonight if its last night is the newest of all, or no more days older: nights begin before
midnight and after it."""
GONE_DAYS: Final = STRIP_NIGHTS
"""An experiment that its suite has not run for so many days is none of its any more."""
STILL_DAYS: Final = 30
"""What got worse within so many days is shown as long as it lasts."""
FINDINGS_SHOWN: Final = 6
EARLIER_SHOWN: Final = 100
STOPPED_SHOWN: Final = 12


def morning_content(
    past: Past,
    site: Site,
    checked: Mapping[str, Checked],
    usual: Levels,
    words: Mapping[int, Told],
    *,
    left_out: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """What its template names.

    checked: the last night of every suite. words: of every finding, by its id. left_out: by suite, titles of
    the runs that were not made for lack of time.
    """
    newest = max(night.night for night in checked.values())
    tonight = {
        suite: night for suite, night in checked.items() if night.night >= _before(newest, TONIGHT_DAYS)
    }
    nights = list(tonight.values())
    alive = [entry for entry in past.entries.values() if _is_alive(entry, tonight)]
    wrong = [run for night in nights for run in overview.wrongs(night, past, site)]
    flakes = [
        flake
        for night in nights
        for flake in night.flakes
        if _is_alive(past.entries[flake.suite, flake.entry], tonight)
    ]
    changes = _changes(nights, _before(newest, STILL_DAYS), words)
    earlier = max((len(entry.nights) - 1 for entry in alive), default=0)
    titles = [title for of_suite in left_out.values() for title in of_suite]
    return changes | {
        "night": day_text(date.fromisoformat(newest)),
        "described": ", ".join(dict.fromkeys(entry.experiment for entry in alive)),
        "verdict": cards.worse_verdict(changes["worse"], len(changes["still"]), nights, earlier),
        "ran": cards.held_verdict(nights, wrong, titles),
        "headlines": cards.headlines(nights, past),
        "shown": FINDINGS_SHOWN,
        "failed": sorted(wrong, key=lambda one: one.allowed),
        "suites": [
            overview.suite_rows(night, [entry for entry in alive if entry.suite == suite], usual)
            for suite, night in tonight.items()
        ],
        "flakes": overview.flake_rows(flakes),
        "flakes_over": sum(flake.pattern == overview.OVER for flake in flakes),
        "strip_nights": STRIP_NIGHTS,
        "stopped": overview.stopped(
            [entry for entry in past.entries.values() if not _is_alive(entry, tonight)], newest
        ),
        "stopped_shown": STOPPED_SHOWN,
        "problems": past.problems,
    }


def _is_alive(entry: Entry, tonight: Mapping[str, Checked]) -> bool:
    """Whether an entry is still one of a suite that ran tonight."""
    night = tonight.get(entry.suite)
    return night is not None and entry.last > _before(night.night, GONE_DAYS)


def _changes(nights: Sequence[Checked], recently: str, words: Mapping[int, Told]) -> dict[str, list[Told]]:
    """Findings as the page shows them: what got worse, what still is, what got better, and all earlier."""

    def told(findings: Iterable[Finding]) -> list[Told]:
        return [words[id(finding)] for finding in findings]

    findings = [found for night in nights for found in night.findings]
    worse = [found for night in nights for found in night.worse]
    now = {id(found) for found in worse}
    older = [found for found in findings if not found.new and id(found) not in now]
    older.sort(key=lambda found: found.first_bad_night, reverse=True)
    still = [found for found in older if found.direction == "worse" and found.first_bad_night >= recently]
    return {
        "worse": told(worse),
        "better": told(found for found in findings if found.new and found.direction == "better"),
        "still": told(still),
        "older": told([found for found in older if found not in still][:EARLIER_SHOWN]),
    }


def _before(night: str, days: int) -> str:
    return (date.fromisoformat(night) - timedelta(days=days)).isoformat()
