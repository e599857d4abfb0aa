"""Hooks at the end of a night: commands that get the night as JSON on standard input.

A command is split into words as by a shell, but no shell is started: use `sh -c '…'` for one. A failing hook
is reported and changes nothing else.
"""

import json
import shlex
import socket
import subprocess
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from experiments import child_processes
from experiments.campaigns.campaign import RunState
from experiments.campaigns.nights import NightDirectory, NightRecord, NightRun
from topologies.errors import InputError
from topologies.first_texts import first_texts

TIMEOUT_S = 60.0
SHOWN_MAX = 20  # lines of a message


def check_hooks(commands: tuple[str, ...]) -> None:
    """Check that hooks can be split into words. Raises InputError."""
    for command in commands:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InputError("--hook", None, "", f"{command!r} is not a command: {error}") from None
        if not words:
            raise InputError("--hook", None, "", "should be a command")


def message(directory: NightDirectory, record: NightRecord, page: Path | None) -> dict[str, Any]:
    """Return the JSON for a hook. page: the morning page, if there is one."""
    failed = [_failed_run(directory, run) for run in record.failing]
    lines = [
        *([f"not checked: {record.unchecked}"] if record.unchecked is not None else []),
        *record.findings,
        *(f"{run['title']}: {run['failure']}: {run['problem']}" for run in failed),
    ]
    shown = str(page.absolute()) if page else None
    return _message(
        record.suite,
        record.night,
        night_result(record),
        [*first_texts(lines, SHOWN_MAX), *([shown] if shown else [])],
        outcome=record.outcome,
        exit_code=record.exit_code,
        findings=list(record.findings),
        unchecked=record.unchecked,
        failed=failed,
        skipped=[run.name for run in record.runs if run.state is RunState.SKIPPED],
        runs=len(record.runs),
        page=shown,
        log=str(directory.log.absolute()),
    )


def message_of_missing_night(suite: str, night: date, problem: str, exit_code: int) -> dict[str, Any]:
    """Return the JSON for a hook about a night that could not begin. problem: why."""
    counts: dict[str, Any] = {"findings": [], "failed": [], "skipped": [], "runs": 0}
    ended = {"outcome": "not begun", "exit_code": exit_code, "unchecked": problem, "page": None, "log": None}
    return _message(suite, night.isoformat(), "it could not begin", [problem], **ended, **counts)


def _message(suite: str, night: str, result: str, lines: list[str], **fields: Any) -> dict[str, Any]:
    machine = socket.gethostname()
    subject = f"{suite} {night} on {machine}: {result}"
    text = "\n".join([subject, *lines])
    return {"night": night, "suite": suite, "machine": machine, "subject": subject, "text": text, **fields}


def call(command: str, content: Mapping[str, Any], *, timeout_s: float = TIMEOUT_S) -> str | None:
    """Run a hook; return its problem, or None."""
    words = shlex.split(command)
    try:
        done = child_processes.run(
            words,
            input=json.dumps(content) + "\n",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the hook {words[0]} was ended after {timeout_s:g} s"
    except OSError as error:
        return f"the hook {words[0]} could not be started: {error.strerror}"
    if done.returncode == 0:
        return None
    errors = done.stderr.strip().splitlines() or ["no output on standard error"]
    return f"the hook {words[0]} failed with {done.returncode}: {errors[-1]}"


def _failed_run(directory: NightDirectory, run: NightRun) -> dict[str, Any]:
    made = directory.run_of(run)
    return {
        "title": run.name,
        "entry": run.entry,
        "repeat": run.repetition,
        "seed": run.seed,
        "failure": run.failure,
        "problem": run.problem,
        "run": str(made.path.absolute()) if made else None,
    }


def night_result(record: NightRecord) -> str:
    """Return a night's result, as `2 got worse, 1 of 17 runs failed`; if incomplete, how it ended first."""
    parts = [] if record.over else [record.outcome or "broken"]
    parts += [f"{len(record.findings)} got worse"] if record.findings else []
    parts += [f"{count} of {len(record.runs)} runs failed"] if (count := len(record.failing)) else []
    parts += ["not checked"] if record.over and record.unchecked is not None else []
    return ", ".join(parts) or "fine"
