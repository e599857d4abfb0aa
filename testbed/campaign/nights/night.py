"""A running night: its record, which is kept the same as night.json, its history and its log.

The files of nights are kept within a disk budget while nights run.
"""

import contextlib
import shutil
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.campaigns.campaign import FailureKind
from experiments.campaigns.nights import NightDirectory, NightRecord, NightRun
from experiments.suite import SuiteEntry, SuiteFile
from testbed.campaign.campaign import Campaign
from testbed.campaign.exit_codes import EXPECTED_ERRORS
from testbed.campaign.in_use import sole_writer
from testbed.campaign.texts.campaign_text import run_line
from testbed.errors import MachineError
from testbed.nightly.planning import DurationEstimate, budget_left_s, skipped
from topologies.errors import InputError

if TYPE_CHECKING:
    from analysis.history import HistoryRecord
    from testbed.campaign.texts.progress import Follower


ROOM_BYTES_MIN = 64 << 20
"""With less free disk space no run is begun, because none could be analysed (`testbed.campaign.one_run`)."""


class Night(Campaign[NightRecord]):
    """The record of a running night, with its suite, its history and its estimates."""

    def __init__(
        self,
        directory: NightDirectory,
        record: NightRecord,
        file: SuiteFile,
        history: Path,
        earlier_s: dict[str, float],
    ) -> None:
        from analysis.history import History

        super().__init__(record, directory.write)
        self.directory = directory
        self.file = file
        self.history = History(history)
        self.expected = DurationEstimate(file, earlier_s)
        self._began_s = time.monotonic() - record.spent_s

    def entry_of(self, run: NightRun) -> SuiteEntry:
        """Return the suite's entry that a run belongs to."""
        return next(entry for entry in self.file.suite.entries if entry.name == run.entry)

    def update(self, record: NightRecord) -> None:
        """Write the record, with the time that the night has taken so far."""
        super().update(replace(record, spent_s=round(time.monotonic() - self._began_s, 3)))

    def end(self, run: NightRun) -> str:
        """Add an ended run to the history, then to the record; return the line to show.

        After a crash between the two steps, the run is recorded without being made again.
        """
        kept = self._history_record(run)
        self.history.append(kept)
        return self.leave(replace(run, failure=_failure_of(kept)))

    def leave(self, run: NightRun) -> str:
        """Record a run that has ended; return the line to show."""
        self.note(run)
        left_s = self.expected.left_s(self.record)
        line = run_line(run, self.record.ended, len(self.record.runs), left_s)
        self.log(line)
        return line

    def fits(self, run: NightRun) -> bool:
        """Return whether there is time for a run; if not, it is recorded as skipped."""
        needed_s = self.expected.estimate_s(run, self.record)
        left_s = budget_left_s(run, self.record, self.file)
        if needed_s <= left_s:
            return True
        self.say(self.leave(skipped(run, needed_s, left_s)))
        return False

    @property
    def full_disk(self) -> str | None:
        """The remedy for a full disk, if the disk of the runs or of the history is full."""
        for folder in (self.directory.runs, self.history.folder):
            free = shutil.disk_usage(folder).free
            if free < ROOM_BYTES_MIN:
                return (
                    f"the disk is full, {free >> 20} MiB are left at {folder}: make room with `cutset history"
                    f" prune --keep SIZE`, then continue with `cutset nightly {self.record.suite} --resume`"
                )
        return None

    def check_room(self) -> None:
        """Raise MachineError if a disk is full. Runs that failed for that are made again."""
        if (problem := self.full_disk) is not None:
            raise MachineError(problem)

    def say(self, text: str, follow: "Follower | None" = None) -> None:
        """Show a permanent line, and log it."""
        self.log(text)
        if follow is None:
            click.echo(text, err=True)
        else:
            follow.show(text)

    @contextlib.contextmanager
    def going_on(self, otherwise: str) -> Iterator[list[str]]:
        """Keep errors in the block from ending the night: each is shown, and added to the yielded list.

        otherwise: the action that failed, in a few words. The traceback of a defect goes into the log.
        """
        problems: list[str] = []
        try:
            yield problems
        except Exception as error:  # noqa: BLE001 - the rest of the night must still be done
            problems.append(str(error) or type(error).__name__)
            if not isinstance(error, EXPECTED_ERRORS):
                self.log("".join(traceback.format_exception(error)))
            self.say(f"problem: {otherwise}: {problems[-1]}")

    def log(self, text: str) -> None:
        """Add lines to the night's log, each with the time."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        with (
            contextlib.suppress(OSError),  # standard error shows the same lines
            self.directory.log.open("a", errors="backslashreplace") as log,
        ):
            log.writelines(f"{now} {line}\n" for line in text.splitlines())

    def _history_record(self, run: NightRun) -> "HistoryRecord":
        from analysis.history import record_from_run, record_of_failed_start

        entry = self.entry_of(run)
        settings = {**entry.settings, **({"topology": entry.topology} if entry.topology else {})}
        of: dict[str, Any] = {
            "night": self.record.night,
            "suite": self.record.suite,
            "entry": run.entry,
            "repeat": run.repetition,
            "settings": settings,
            "allow_failure": run.allow_failure,
        }
        made = self.directory.run_of(run)
        if made is not None and made.run_json.is_file():
            return record_from_run(made, **of)
        return record_of_failed_start(
            run.problem or "unknown",
            **of,
            experiment=run.experiment,
            started_ns=run.started_ns or time.time_ns(),
            seed=run.seed,
        )


def _failure_of(kept: "HistoryRecord") -> FailureKind | None:
    from analysis.history.regressions.findings import failure_of

    missed = [expectation.text for expectation in kept.expectations if not expectation.held]
    return failure_of({key: getattr(kept, key) for key in ("verdict", "outcome", "problems")}, missed)


def earlier_durations_s(runs: Path, file: SuiteFile, before: str) -> dict[str, float]:
    """Return the longest duration of each entry's runs in the last night of the suite before this one."""
    from topologies.errors import InputError

    latest = NightDirectory.latest(runs, file.suite.suite, before=before)
    if latest is None:
        return {}
    try:
        record = latest.read()
    except InputError:  # only a guess is lost
        return {}
    found: dict[str, float] = {}
    for run in record.runs:
        if run.verdict is not None and run.duration_s:
            found[run.entry] = max(found.get(run.entry, 0.0), run.duration_s)
    return found


def make_room(night: Night, keep_bytes: int | None, *, say_all: bool = False) -> None:
    """Remove old captures, then other parts, until the history's runs fit `keep_bytes` (None: no limit).

    Parts that cannot be removed or do not fit are reported and do not end the night. say_all: also report
    which directories are left as they are because they cannot be read.
    """
    from analysis.history.pruning import plan_pruning, remove

    if keep_bytes is None:
        return
    with night.going_on("no room was made on the disk"):
        plan = plan_pruning(night.history, night.directory.runs, keep_bytes)
        for removal in plan.removals:
            try:
                with sole_writer(removal.run.path):
                    remove(removal)
            except (InputError, MachineError, OSError) as error:
                night.say(f"problem: {removal.run.name}: its {removal.part} were not removed: {error}")
            else:
                night.log(f"{removal.run.name}: {removal.part} removed, {removal.bytes >> 20} MiB")
        for problem in plan.untouched if say_all else ():
            night.say(f"problem: --keep removes nothing of it: {problem}")
        if plan.after > keep_bytes:
            night.say(f"problem: the runs take {plan.after >> 20} MiB, more than --keep allows")
