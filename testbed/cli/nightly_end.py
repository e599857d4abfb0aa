"""How a night ends: its history is compacted and checked, the morning page written, and others are told."""

import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.errors import AnalysisError
from experiments.rundir import write_whole
from testbed.cli import exit_codes
from testbed.cli.nightly_findings import finding_line
from testbed.cli.nightly_text import show_night
from testbed.nightly.hooks import call, message
from testbed.nightly.junit import junit_xml
from testbed.nightly.results import exit_code

if TYPE_CHECKING:
    from analysis.regressions.findings import Checked
    from testbed.cli.nightly_night import Night
    from testbed.cli.nightly_run import Asked


def end_night(night: "Night", outcome: str, asked: "Asked") -> int:
    """Returns the exit code. outcome: completed, interrupted, crashed."""
    completed = outcome == "completed"
    checked, page = None, None
    if completed:
        night.history.compact(night.record.night)
        checked = _check(night)
    findings = tuple(map(finding_line, checked.worse)) if checked else ()
    record = replace(night.record, outcome=outcome, ended_ns=time.time_ns(), findings=findings)
    code = exit_code(record) if checked else _code_without_check(outcome)
    night.update(replace(record, exit_code=code))
    write_whole(night.directory.junit_xml, junit_xml(night.directory, night.record))
    if completed:
        page = _page(night, asked.options.page_folder, checked)
    night.log(f"the night is {outcome}, exit code {code}")
    if outcome != "interrupted":
        tell(night, page, (*asked.options.hooks_always, *(asked.options.hooks if code else ())))
    show_night(night.directory, night.record, night.file, page)
    return code


def tell(night: "Night", page: Path | None, hooks: tuple[str, ...]) -> None:
    """Call the hooks, and say which of them failed."""
    content = message(night.directory, night.record, page)
    for command in hooks:
        if (problem := call(command, content)) is not None:
            night.say(f"problem: {problem}")


def _code_without_check(outcome: str) -> int:
    return exit_codes.INTERRUPTED if outcome == "interrupted" else exit_codes.FAILED


def _check(night: "Night") -> "Checked | None":
    """Hold the night against those before it; None, with a line that says why, if that cannot be done."""
    from analysis.regressions.checking import check_night

    try:
        return check_night(night.history, night.record.night, night.record.suite)
    except AnalysisError as error:
        night.say(f"problem: the night was not checked: {error}")
        return None
    finally:
        for problem in night.history.problems:
            night.say(f"problem: {problem}")


def _page(night: "Night", site: Path, checked: "Checked | None") -> Path | None:
    """Write the morning page; None, with a line that says why, if it cannot be written."""
    from analysis.nights import write_site

    try:
        return write_site(night.history, site, {night.record.suite: checked} if checked else None)
    except Exception as error:  # noqa: BLE001 - the night's results stand, and others are still to be told
        night.log("".join(traceback.format_exception(error)))
        night.say(f"problem: the morning page was not written: {error}")
        return None
