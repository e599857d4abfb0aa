"""The record of a run: writes run.json during the run, and sends messages to the CLI.

Inside the sandbox this is the only writer of run.json. The file is written at every phase, so that after a
crash it shows how far the run got. During measurement a thread writes it, because a synchronised write can
block on the disk. A small reserve file is removed when the disk is full, so that the end of such a run can be
recorded too. If a sandbox died, the process that started it records the outcome (`record_end`).
"""

import asyncio
import contextlib
import errno
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from experiments.files.whole_files import write_whole
from experiments.planned.change_text import change_values
from experiments.records.run_record import Outcome, RunPhase, RunRecord, record_text, write_record
from experiments.records.rundir import RunDirectory
from testbed.faults.application import AppliedChange
from testbed.sandbox.channel import SILENCE_S

RESERVE_BYTES = 4 << 20
PROBLEMS_MAX = 100
RUNNER_LOG = "runner.log"


Post = Callable[[dict[str, Any]], object]
"""Sends a message about the progress of a run; it may be lost."""


class RunRecordWriter:
    """The record of a run so far. post: sends messages to the CLI, which follows the run."""

    now_ns: Callable[[], int] = time.time_ns
    """The clock of the run; virtual time has another."""

    def __init__(self, directory: RunDirectory, post: Post) -> None:
        self.directory = directory
        self.content = directory.read_run()
        self._post = post
        self._saving = asyncio.Lock()
        self._reserve = tempfile.TemporaryFile(dir=directory.path)  # noqa: SIM115 - see `close`
        with contextlib.suppress(OSError):  # without the reserve, only a full disk loses the outcome
            os.posix_fallocate(self._reserve.fileno(), 0, RESERVE_BYTES)

    def notify(self, did: str, **fields: Any) -> None:
        """Notify the CLI; a lost message can be read from run.json."""
        self._post({"did": did, **fields})

    def phase(self, phase: RunPhase) -> None:
        """Enter a phase; the CLI is notified after the phase is on disk, so that a crash cannot revert it."""
        self.note(phase=phase)
        self.save()
        self.notify("phase", phase=phase)

    def time(self, name: str, time_ns: int | None = None) -> int:
        """Record the time of an event (a key of `times`): now, or this instant. Return the time."""
        noted = self.now_ns() if time_ns is None else time_ns
        self.note(times=replace(self.content.times, **{name: noted}))
        return noted

    def problem(self, text: str) -> None:
        """Record a problem for the user and the report."""
        problems = self.content.problems
        if len(problems) < PROBLEMS_MAX and text not in problems:
            self.note(problems=(*problems, text))
            self.notify("problem", text=text[:1000])

    def change(self, applied: AppliedChange) -> None:
        """Record a change that was applied, or failed, and notify the CLI."""
        self.note(changes=(*self.content.changes, applied.record))
        self.notify("change", **applied.as_message(), values=change_values(applied.change, self.content.plan))
        if applied.problem is not None:
            self.problem(applied.problem)

    def note(self, **fields: Any) -> None:
        """Set fields of the record."""
        self.content = replace(self.content, **fields)

    def save(self) -> None:
        """Write run.json now."""
        self._write(record_text(self.content))

    async def save_aside(self) -> None:
        """Write run.json in a thread, because the disk may block; compactly, because that is cheapest."""
        text = record_text(self.content, indent=None)
        async with self._saving:
            writing = asyncio.create_task(asyncio.to_thread(self._write, text))
            try:
                await asyncio.shield(writing)
            finally:
                await writing  # even if cancelled: it must not overtake the next write

    def close(self) -> None:
        """Release the reserve; idempotent."""
        self._reserve.close()

    def _write(self, text: str) -> None:
        try:
            write_whole(self.directory.run_json, text)
        except OSError as error:
            if error.errno != errno.ENOSPC or self._reserve.closed:
                raise
            self._reserve.close()
            write_whole(self.directory.run_json, text)


def record_end(
    run: RunDirectory, log: str = f"logs/{RUNNER_LOG}", *, hung: bool = False, by_user: bool = False
) -> RunRecord:
    """Return the run's record; if a dead sandbox left it without outcome, record a crash or an interruption.

    log: the log file that problems refer to. hung: whether it was killed because it did not show life.
    by_user: whether the user had it killed.
    """
    record = run.read_run()
    if record.outcome is not None:
        return record
    how = f"hung for {SILENCE_S:g} s and was killed" if hung else "died"
    reason = f"the run {how} while {record.phase}: see {log}"
    settled = replace(
        record,
        outcome=Outcome.INTERRUPTED if by_user else Outcome.CRASHED,
        problems=(*record.problems, f"killed by the user while {record.phase}" if by_user else reason),
        times=replace(record.times, ended_ns=time.time_ns()),
    )
    write_record(run.run_json, settled)
    return settled
