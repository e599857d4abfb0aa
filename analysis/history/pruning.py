"""Keeps a history's runs within a disk budget: captures go first, summaries stay.

The budget covers the directories of the history's runs, the leftovers of interrupted nights beside them, and
the history itself. Data is removed until the rest fits, in this order: whole leftovers, the oldest first;
captures, the oldest run's first; tables, records and figures; pages. run.json and summary.json stay, and with
them every number. run.json marks a part as left out before the part is removed, so a crash in between cannot
leave half a run that looks complete. A directory without a readable run.json counts and stays.

A history contains the paths of its runs and may come from anywhere. Therefore only entries directly in the
folder of runs that the user named are removed, and only if they are real directories and hold the run of that
name. No link is followed below that folder, nor one that replaces a directory during the removal.
"""

import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from analysis.history.record import folder_bytes
from analysis.history.store import History
from experiments.archives.packing import CAPTURES, with_left_out
from experiments.campaigns.nights import TORN
from experiments.files.plain_name import refuse_link
from experiments.records.run_record import write_record
from experiments.records.rundir import RunDirectory, is_run_name
from topologies.errors import InputError

REMAINS: Final = "remains"  # everything of an interrupted run: it is repeated, and has no numbers
TABLES: Final = "tables"
PAGES: Final = "pages"
PARTS: Final = (REMAINS, CAPTURES, TABLES, PAGES)
"""Order of removal."""
WHY: Final = "removed to stay within the disk budget"


@dataclass(frozen=True, slots=True)
class RunSize:
    """The disk space of a run. parts: bytes of each removable part. stays: bytes of the rest."""

    run: RunDirectory
    parts: dict[str, int]
    stays: int

    @property
    def bytes(self) -> int:
        """All bytes of the run."""
        return self.stays + sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class Removal:
    """A part of a run to remove."""

    run: RunDirectory
    part: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruning:
    """The removals that make the rest fit.

    before, after: total bytes. untouched: directories that stay as they are, each with the reason.
    """

    removals: tuple[Removal, ...]
    before: int
    after: int
    untouched: tuple[str, ...] = ()


def plan_pruning(history: History, runs: Path, budget_bytes: int) -> Pruning:
    """Return the removals that bring the history and its runs down to the budget.

    runs: the folder of runs. The paths in the history do not override it.
    """
    directories, untouched = _directories(history, runs)
    rooms = [_room(run) for run in directories]
    own = folder_bytes(history.folder)

    @cache
    def may_go(run: RunDirectory) -> bool:
        try:
            _check(run)
        except (InputError, OSError) as error:
            untouched.append(str(error))
            return False
        return True

    chosen = choose(rooms, budget_bytes - own, may_go)
    before = own + sum(room.bytes for room in rooms)
    gone = sum(removal.bytes for removal in chosen)
    return Pruning(tuple(chosen), before, before - gone, tuple(untouched))


def choose(
    rooms: Sequence[RunSize], budget_bytes: int, may_go: Callable[[RunDirectory], bool] = lambda _: True
) -> list[Removal]:
    """Return the parts to remove, in order, until the rest fits or nothing more may go.

    rooms: oldest run first.
    """
    total = sum(room.bytes for room in rooms)
    chosen: list[Removal] = []
    for part in PARTS:
        for room in rooms:
            if total <= budget_bytes:
                return chosen
            size = room.parts.get(part, 0)
            if size and may_go(room.run):
                chosen.append(Removal(room.run, part, size))
                total -= size
    return chosen


def remove(removal: Removal) -> None:
    """Remove a part and mark it in run.json first, if run.json stays. Raises InputError, OSError."""
    run = removal.run
    if removal.part == REMAINS:
        _remove(run.path.parent, run.path)
        return
    write_record(run.run_json, with_left_out(run.read_run(), removal.part, WHY))
    for path in _paths(run)[removal.part]:
        _remove(run.path.parent, path)


def _remove(runs: Path, path: Path) -> None:
    """Remove a path below the folder of runs, if it exists. Raises OSError, also for links."""
    *folders, name = path.relative_to(runs).parts
    flags = os.O_RDONLY | os.O_DIRECTORY
    with ExitStack() as stack, suppress(FileNotFoundError):
        folder = os.open(runs, flags)
        stack.callback(os.close, folder)
        for part in folders:
            folder = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
            stack.callback(os.close, folder)
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _directories(history: History, runs: Path) -> tuple[list[RunDirectory], list[str]]:
    """Return the runs to consider, oldest first, and the skipped paths.

    The runs are existing runs of the history and leftovers of interrupted nights. Each skipped path has a
    reason.
    """
    rows = history.runs().select(["run", "path"]).to_pylist()
    named = {Path(row["path"]): row["run"] for row in rows if row["path"]}
    home = os.path.realpath(runs)

    @cache
    def is_home(folder: Path) -> bool:
        return os.path.realpath(folder) == home

    found: set[Path] = set()
    outside: Counter[Path] = Counter()
    passed: list[str] = []
    for path, run in sorted(named.items()):
        if not os.path.lexists(path):
            continue
        if not is_home(path.parent):
            outside[path.parent] += 1
        elif path.name != run:
            passed.append(f"{path}: the history names {run} for this path")
        else:
            found.add(runs / run)
    torn = set(runs.glob(f"*{TORN}")) if found else set()
    for path in sorted(found | torn):
        if not is_run_name(path.name):
            passed.append(f"{path}: is not the name of a run")
        elif path.is_symlink() or not path.is_dir():
            passed.append(f"{path}: is a link or a file, not a run directory")
        else:
            continue
        found.discard(path)
        torn.discard(path)
    passed += [
        f"{folder}: has {count:,} run{'s' * (count != 1)} of the history outside {runs}"
        for folder, count in outside.items()
    ]
    return [RunDirectory(path) for path in sorted(found | torn, key=lambda path: path.name)], passed


def _check(run: RunDirectory) -> None:
    """Raise InputError if the directory is not the run of its name, or if a link leads out of it.

    Leftovers of interrupted runs are not checked.
    """
    if run.name.endswith(TORN):
        return
    paths = {path for paths in _paths(run).values() for path in paths}
    for path in sorted({run.run_json, *paths, *(path.parent for path in paths if path.parent != run.path)}):
        refuse_link(path)
    named = RunDirectory.open(run.path).read_run().run
    if named not in {"", run.name}:
        raise InputError(str(run.run_json), None, "run", f"belongs to another run: {named}")


def _room(run: RunDirectory) -> RunSize:
    if run.name.endswith(TORN):
        return RunSize(run, {REMAINS: folder_bytes(run.path)}, 0)
    sizes: dict[Path, int] = {}
    with suppress(OSError):  # not readable: then nothing of it is removed
        sizes = {path: _bytes(path) for path in run.path.iterdir()}
    unpacked = _bytes(run.unpacked)
    parts = {part: sum(sizes.get(path, 0) for path in paths) for part, paths in _paths(run).items()}
    parts[CAPTURES] += unpacked
    parts[TABLES] -= unpacked
    return RunSize(run, parts, sum(sizes.values()) - sum(parts.values()))


def _paths(run: RunDirectory) -> dict[str, tuple[Path, ...]]:
    """Return the paths of each part of a run."""
    return {
        CAPTURES: (run.captures, run.unpacked),
        TABLES: (run.analysis, run.deliveries, run.logs, run.path / "storage", run.figures),
        PAGES: (run.report_html, run.comparison_html),
    }


def _bytes(path: Path) -> int:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else folder_bytes(path)
