"""A finding as text: size of the change, since when, which commits, and links."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from markupsafe import Markup

from analysis.history.regressions.circumstances import in_short
from analysis.history.regressions.findings import RegressionFinding
from analysis.pages.nights.night_reader import Row
from analysis.pages.nights.site_paths import Site, report_of, to_comparison, to_entry
from analysis.pages.report.formatting import STATUS_OF_CHANGE, change_text, day_text, title_of, value_text

COMMIT_DIGITS = 10


@dataclass(frozen=True, slots=True)
class PageLink:
    """An address, relative to the site's folder."""

    address: str
    text: str


@dataclass(frozen=True, slots=True)
class FindingText:
    """A finding as text for a page."""

    entry: str
    entry_link: str
    title: str
    status: str
    size: str
    before: str
    after: str  # empty if it is no longer measured
    interval: str
    since: str
    last_good: str
    commits: str
    commits_say: str
    links: tuple[PageLink, ...]
    chart: Markup
    short: str  # one line


def finding_text(
    finding: RegressionFinding, site: Site, known: Mapping[str, Row], chart: Markup
) -> FindingText:
    """Return the finding as text. known: runs by name; chart: its chart."""
    title = title_of(finding.metric)
    size = size_of(finding)
    since = _day(finding.first_bad_night)
    return FindingText(
        entry=finding.entry,
        entry_link=to_entry(finding.suite, finding.entry),
        title=title,
        status=STATUS_OF_CHANGE[finding.direction],
        size=size,
        before=value_text(finding.before, finding.unit),
        after=value_text(finding.after, finding.unit) if finding.after is not None else "",
        interval=_interval(finding),
        since=_since(finding),
        last_good=_day(finding.last_good_night),
        commits=commits(finding),
        commits_say=_commits_say(finding),
        links=_links(finding, site, known),
        chart=chart,
        short=f"{finding.entry}: {title[:1].lower() + title[1:]} {size}, since {since}",
    )


def size_of(finding: RegressionFinding) -> str:
    """Return the size of the change."""
    if finding.after is None:
        return "no longer measured"
    return change_text(finding.change) if finding.change is not None else "from 0"


def commits(finding: RegressionFinding) -> str:
    """Return the range of commits in git's notation; empty if they are equal or unknown."""
    first, last = finding.last_good_commit[:COMMIT_DIGITS], finding.first_bad_commit[:COMMIT_DIGITS]
    return f"{first}..{last}" if first and last and first != last else ""


def _commits_say(finding: RegressionFinding) -> str:
    also = f" Also changed: {in_short(finding.also_changed)}." if finding.also_changed else ""
    if commits(finding):
        return "Between the commits" if not also else also.strip() + " Commits"
    same = finding.first_bad_commit and finding.first_bad_commit == finding.last_good_commit
    return (
        f"No commit is the cause: both nights ran {finding.first_bad_commit[:COMMIT_DIGITS]}."
        if same
        else "The commits are unknown."
    ) + also


def _since(finding: RegressionFinding) -> str:
    day = _day(finding.first_bad_night)
    if finding.earliest_night == finding.latest_night:
        return day
    return f"{day} (or a night from {_day(finding.earliest_night)} to {_day(finding.latest_night)})"


def _interval(finding: RegressionFinding) -> str:
    """Return the change's bounds, if they belong to the change shown and not to all nights since."""
    interval, change = finding.interval, finding.change
    if interval is None or change is None or not interval[0] <= change <= interval[1]:
        return ""
    return f"{change_text(interval[0])} to {change_text(interval[1])}"


def _links(finding: RegressionFinding, site: Site, known: Mapping[str, Row]) -> tuple[PageLink, ...]:
    """Return links to a run's report since the change, the comparison with a good run, and one before."""

    def report(runs: Iterable[str]) -> str | None:
        return next(filter(None, (report_of(known[run], site.index) for run in runs if run in known)), None)

    compared = next((run for run in finding.runs_after if site.comparison(run).exists()), None)
    links = (
        (report(finding.runs_after), "a run since"),
        (compared and to_comparison(compared), "side by side"),
        (report(finding.runs_before), "a run before"),
    )
    return tuple(PageLink(address, text) for address, text in links if address)


def _day(night: str) -> str:
    return day_text(date.fromisoformat(night))
