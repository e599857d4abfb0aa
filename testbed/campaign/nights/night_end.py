"""The end of a night: its history is checked, its morning page is written, its hooks called.

An error in one step is reported and the other steps still run. The end of the night is recorded last. If the
process is killed before that, `--resume` repeats all steps, so hooks may be called twice, but at least once.

Each finding of the check becomes a line: what got worse, by how much, since when, and in which commits.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.campaigns.campaign import FailureKind, RunState
from experiments.campaigns.nights import NightRecord
from experiments.files.sanitize import sanitize
from experiments.files.whole_files import write_whole
from experiments.records.run_record import Outcome
from testbed.campaign import exit_codes
from testbed.campaign.nights.night import Night, make_room
from testbed.campaign.nights.night_text import show_night
from testbed.nightly.hooks import call, message, message_of_missing_night
from testbed.nightly.junit import junit_xml

if TYPE_CHECKING:
    from analysis.history.regressions.findings import NightFindings, RegressionFinding
    from testbed.campaign.nights.night_options import NightOptions


@dataclass(frozen=True, slots=True)
class NightEnd:
    """The result of a night besides its runs: fields of its record, and the path of its page.

    code: the exit code, if it does not follow from the record.
    """

    outcome: Outcome
    findings: tuple[str, ...] = ()
    findings_allowed: tuple[str, ...] = ()
    unchecked: str | None = None
    page: Path | None = None
    code: int | None = None


def conclude(night: Night, options: "NightOptions") -> NightEnd:
    """Check the history, write the page and make room. Raises KeyboardInterrupt."""
    checked, why_not = _check(night)
    page = _page(night, options.page_folder, checked)
    make_room(night, options.keep_bytes, say_all=True)
    allowed = {run.entry for run in night.record.runs if run.allow_failure}
    worse = checked.worse if checked else ()
    return NightEnd(
        Outcome.COMPLETED,
        findings=tuple(finding_line(finding) for finding in worse if finding.entry not in allowed),
        findings_allowed=tuple(finding_line(finding) for finding in worse if finding.entry in allowed),
        unchecked=why_not,
        page=page,
    )


def end_night(night: Night, ending: NightEnd, options: "NightOptions", *, user_knows: bool) -> int:
    """Record the result of a night, and call its hooks. Return the exit code.

    user_knows: call no hooks, because the user who interrupted the night sees the result.
    """
    record = replace(
        night.record,
        outcome=ending.outcome,
        ended_ns=time.time_ns(),
        findings=ending.findings,
        findings_allowed=ending.findings_allowed,
        unchecked=None if ending.unchecked is None else sanitize(ending.unchecked),
    )
    record = replace(record, exit_code=exit_code(record) if ending.code is None else ending.code)
    with night.going_on("junit.xml was not written"):
        write_whole(night.directory.junit_xml, junit_xml(night.directory, record))
    night.log(f"the night is {record.outcome}, exit code {record.exit_code}")
    if not user_knows:
        with night.going_on("hooks were not called"):
            _call_hooks(options, message(night.directory, record, ending.page), night.say)
    with night.going_on("the end of the night was not recorded"):
        night.update(record)
    show_night(night.directory, record, night.file, ending.page, options)
    return record.exit_code or exit_codes.FINE


def report_missing_night(suite: str, night: date, options: "NightOptions", error: Exception) -> None:
    """Call the hooks for a night that could not begin."""
    code = exit_codes.exit_code_of(error) or exit_codes.FAILED
    _call_hooks(
        options, message_of_missing_night(suite, night, str(error), code), partial(click.echo, err=True)
    )


def _call_hooks(options: "NightOptions", content: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Call the hooks, and report which of them failed."""
    for command in (*options.hooks_always, *(options.hooks if content["exit_code"] else ())):
        if (problem := call(command, content)) is not None:
            say(f"problem: {problem}")


def exit_code(record: NightRecord) -> int:
    """Return the exit code of a night.

    1 if a run failed, a metric got worse or the check is missing; else 3 if the machine failed; else 0. 130
    if the night was interrupted.
    """
    if record.outcome is Outcome.INTERRUPTED:
        return exit_codes.INTERRUPTED
    kinds = {run.failure for run in record.failing}
    if record.findings or record.unchecked is not None or kinds - {FailureKind.HARNESS}:
        return exit_codes.FAILED
    return exit_codes.MACHINE if kinds else exit_codes.FINE


def _check(night: Night) -> "tuple[NightFindings | None, str | None]":
    """Compare the night with earlier ones; return the findings, or why there are none."""
    from analysis.history.regressions.checking import check_night

    with night.going_on("the night was not checked") as problems:
        checked = check_night(night.history, night.record.night, night.record.suite)
    for problem in night.history.problems:
        night.say(f"problem: {problem}")
    return (None, problems[0]) if problems else (checked, None)


def _page(night: Night, site: Path, checked: "NightFindings | None") -> Path | None:
    """Write the morning page; return None, after a line that says why, if it cannot be written."""
    from analysis.pages.nights import write_site

    suite = night.record.suite
    if not any(night.entry_of(run).is_single for run in night.record.runs):
        night.say(
            "no morning page: it compares single runs, and this suite has none: see the runs' own reports"
        )
        return None
    left_out = [run.name for run in night.record.runs if run.state is RunState.SKIPPED]
    with night.going_on("the morning page was not written"):
        return write_site(night.history, site, {suite: checked} if checked else None, {suite: left_out})
    return None


COMMIT_DIGITS = 10


def finding_line(finding: "RegressionFinding") -> str:
    """Return `link-failure latency.p99_ms: 10 ms, then 13 ms (+30 %), since 2026-11-20, commits 1a..2b`.

    Other changes since then follow, as `; also changed: workload.rate 2000/s -> 1000/s`.
    """
    from analysis.history.regressions.circumstances import in_short
    from analysis.pages.report.formatting import change_text, value_text

    before, after = (value_text(value, finding.unit) for value in (finding.before, finding.after))
    also = f"; also changed: {in_short(finding.also_changed)}" if finding.also_changed else ""
    size = f" ({change_text(finding.change)})" if finding.change is not None else ""
    return sanitize(
        f"{finding.entry} {finding.metric}: {before}, then {after}{size}, since {finding.first_bad_night}"
        f"{_commits(finding)}{also}"
    )


def _commits(finding: "RegressionFinding") -> str:
    first, last = finding.last_good_commit[:COMMIT_DIGITS], finding.first_bad_commit[:COMMIT_DIGITS]
    if not first or not last:
        return ""
    return ", the same commit" if first == last else f", commits {first}..{last}"
