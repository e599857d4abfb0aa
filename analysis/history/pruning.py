"""Keeps a history's runs within a disk budget: captures go first, summaries stay.

What is counted: the directories of the history's runs, of what torn nights left beside them, and the history
itself. What goes, until the rest fits: what torn nights left, whole, the oldest first; then captures, the
oldest run's first; then tables, records and figures; then pages. run.json and summary.json stay, and with
them every number. run.json names a part as left out before it goes, so that a crash in between leaves no half
of a run that passes for a whole one; a directory without a run.json that can be read is counted and stays.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from analysis.history.record import folder_bytes
from analysis.history.store import History
from experiments.nights import TORN
from experiments.packing import CAPTURES, without
from experiments.run_record import write_record
from experiments.rundir import RunDirectory, is_run_name
from topologies.errors import InputError

REMAINS: Final = "remains"  # all of what a torn run left: it is made again, and has no numbers
TABLES: Final = "tables"
PAGES: Final = "pages"
PARTS: Final = (REMAINS, CAPTURES, TABLES, PAGES)
"""In the order in which they go."""
WHY: Final = "removed to stay within the disk budget"


@dataclass(frozen=True, slots=True)
class RunSize:
    """The disk space of a run. parts: bytes of each removable part. stays: of the rest."""

    run: RunDirectory
    parts: dict[str, int]
    stays: int

    @property
    def bytes(self) -> int:
        """All of it."""
        return self.stays + sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class Removal:
    """A part of a run that is to go."""

    run: RunDirectory
    part: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruning:
    """What has to go so that the rest fits.

    before, after: bytes in all. untouched: directories that stay as they are, and why.
    """

    removals: tuple[Removal, ...]
    before: int
    after: int
    untouched: tuple[str, ...] = ()


def plan_pruning(history: History, budget_bytes: int) -> Pruning:
    """What to remove so that the history's runs and the history take at most so much."""
    rooms, untouched = [], []
    for run in _directories(history):
        try:
            rooms.append(_room(run))
        except InputError as error:
            rooms.append(RunSize(run, {}, folder_bytes(run.path)))
            untouched.append(str(error))
    own = folder_bytes(history.folder)
    chosen = choose(rooms, budget_bytes - own)
    before = own + sum(room.bytes for room in rooms)
    gone = sum(removal.bytes for removal in chosen)
    return Pruning(tuple(chosen), before, before - gone, tuple(untouched))


def choose(rooms: Sequence[RunSize], budget_bytes: int) -> list[Removal]:
    """The parts that go, in order, until the rest fits or nothing more may go. rooms: the oldest first."""
    total = sum(room.bytes for room in rooms)
    chosen: list[Removal] = []
    for part in PARTS:
        for room in rooms:
            if total <= budget_bytes:
                return chosen
            size = room.parts.get(part, 0)
            if size:
                chosen.append(Removal(room.run, part, size))
                total -= size
    return chosen


def remove(removal: Removal) -> None:
    """Remove a part, and say so in run.json first, if that stays. Raises InputError, OSError."""
    if removal.part == REMAINS:
        shutil.rmtree(removal.run.path)
        return
    write_record(removal.run.run_json, without(removal.run.read_run(), removal.part, WHY))
    for path in _paths(removal.run)[removal.part]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _directories(history: History) -> Iterator[RunDirectory]:
    """The runs' directories that are still there, the oldest first, and what torn nights left beside them."""
    listed = {Path(path) for path in history.runs()["path"].to_pylist() if path}
    torn = {path for folder in {path.parent for path in listed} for path in folder.glob(f"*{TORN}")}
    for path in sorted(listed | torn, key=lambda path: (path.name, str(path))):
        if path.is_dir() and not path.is_symlink():
            yield RunDirectory(path)


def _room(run: RunDirectory) -> RunSize:
    """Raises InputError if it is neither a run directory nor what a torn run left.

    Where runs are the history says, and whoever can write there could name any folder: ours have names by
    which they are known.
    """
    if not is_run_name(run.name):
        raise InputError(str(run.path), None, "", "is not named as runs are: nothing of it is removed")
    if run.name.endswith(TORN):
        return RunSize(run, {REMAINS: folder_bytes(run.path)}, 0)
    RunDirectory.open(run.path).read_run()
    parts: dict[str, int] = {}
    counted = 0
    for part, paths in _paths(run).items():
        parts[part] = sum(map(_bytes, paths)) - (_bytes(run.unpacked) if part == TABLES else 0)
        counted += parts[part]
    return RunSize(run, parts, folder_bytes(run.path) - counted)


def _paths(run: RunDirectory) -> dict[str, tuple[Path, ...]]:
    """Where the parts of a run stand."""
    return {
        CAPTURES: (run.captures, run.unpacked),
        TABLES: (run.analysis, run.deliveries, run.logs, run.path / "storage", run.figures),
        PAGES: (run.report_html, run.comparison_html),
    }


def _bytes(path: Path) -> int:
    return path.lstat().st_size if path.is_file() and not path.is_symlink() else folder_bytes(path)
