"""The RUN argument of commands: a path, a name below runs/, `latest`, or a packed run; or captures.

A packed run is unpacked below runs/ first and stays there. Captures are a file, a folder, a pattern, a URL,
or `-`, standard input.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.records.rundir import CAPTURE_ENDINGS, RUNS

if TYPE_CHECKING:
    from experiments.campaigns.sweepdir import SweepDirectory
    from experiments.records.rundir import RunDirectory

LATEST = "latest"
STANDARD_INPUT = "-"
PACKED = ".tar.zst"
URL = "://"
NAMED_MAX = 5
"""The number of a sweep's runs that are listed in an error."""


def named_run(name: str, runs: Path = RUNS) -> "RunDirectory":
    """Return the run of that name. Raises InputError if there is none, or if it is not a run directory."""
    from experiments.records.rundir import RunDirectory

    path = _named(name, runs)
    if not RunDirectory(path).run_json.is_file():
        _refuse_sweep(path)
    return RunDirectory.open(path)


def named_sweep(name: str, runs: Path = RUNS) -> "SweepDirectory":
    """Return the sweep of that name. Raises InputError if there is none, or it is no sweep's directory."""
    from experiments.campaigns.sweepdir import SweepDirectory

    return SweepDirectory.open(_named(name, runs))


def named(name: str, runs: Path = RUNS) -> "RunDirectory | SweepDirectory":
    """Return the run or the sweep of that name. Raises InputError if there is none."""
    from experiments.campaigns.sweepdir import SweepDirectory
    from experiments.records.rundir import RunDirectory

    path = _named(name, runs)
    is_sweep = SweepDirectory(path).sweep_json.is_file()
    return SweepDirectory.open(path) if is_sweep else RunDirectory.open(path)


def is_captures(name: str, runs: Path = RUNS) -> bool:
    """Return whether the name means captures rather than a run or a sweep."""
    if name.endswith(PACKED) or (name == LATEST and not Path(name).exists()):
        return False
    if name == STANDARD_INPUT or URL in name:
        return True
    path = _directory(name, runs)
    if path is None:
        found = Path(name)
        return found.is_file() or found.suffix in _SUFFIXES or any(sign in name for sign in "*?[")
    if any((path / f"{kind}.json").is_file() for kind in ("run", "sweep")):
        return False
    return any(each.name.endswith(CAPTURE_ENDINGS) for each in path.iterdir())


_SUFFIXES = (".pcap", ".pcapng", ".cap", ".dmp", ".gz", ".zst")


def named_cases(names: "Sequence[str]", runs: Path = RUNS) -> "tuple[list[str], list[str]]":
    """Return which of these names mean runs, and which captures."""
    captures = [name for name in names if is_captures(name, runs)]
    return [name for name in names if name not in captures], captures


def packed(name: str) -> Path | None:
    """Return the archive that a RUN names; None if it names none."""
    return Path(name) if name.endswith(PACKED) and Path(name).is_file() else None


def run_names(runs: Path) -> list[str]:
    """Return the runs and sweeps below a folder, oldest first: their names begin with their time."""
    return sorted(path.parent.name for kind in ("run", "sweep") for path in runs.glob(f"*/{kind}.json"))


def _named(name: str, runs: Path) -> Path:
    from topologies.errors import InputError

    if URL in name:
        raise InputError(name, None, "", "only captures are read from URLs: download the run first")
    if is_captures(name, runs):
        needs = "is no run but captures, without the plan of a run that this command needs"
        raise InputError(name, None, "", f"{needs}: use `cutset captures`, `packets` or `sql`")
    if name.endswith(PACKED):
        return _unpacked(Path(name), runs)
    if name != LATEST and (named := _directory(name, runs)) is not None:
        return named  # without reading the names of all runs
    known = run_names(runs)
    if name == LATEST and not Path(name).exists():
        if not known:
            raise InputError(name, None, "", f"there are no runs in {runs}/ yet: make one with `cutset run`")
        return runs / _latest(known, runs)
    found = _directory(name, runs)
    if found is None:
        raise InputError(name, None, "", f"there is no such run{_advice(name, known, runs)}")
    return found


def _latest(known: Sequence[str], runs: Path) -> str:
    """Return the last run that no other command makes or analyses. Raises InputError."""
    from testbed.campaign.in_use import is_over
    from topologies.errors import InputError

    found = next((name for name in reversed(known) if is_over(runs / name)), None)
    if found is None:
        raise InputError(LATEST, None, "", f"all runs in {runs}/ are still being made or analysed")
    return found


def _directory(name: str, runs: Path) -> Path | None:
    return next((path for path in (Path(name), runs / name) if path.is_dir()), None)


def _advice(name: str, known: Sequence[str], runs: Path) -> str:
    """Suggest a run: one whose name begins with or contains this, or the most similar name."""
    if not known:
        return f"; there are no runs in {runs}/ yet"
    asked = name.removeprefix(f"{runs}/").rstrip("/")
    meant = [each for each in known if each.startswith(asked)] or [each for each in known if asked in each]
    if len(meant) > 1:
        return f"; {len(meant)} contain it in their names, the latest is {meant[-1]}"
    near = meant or difflib.get_close_matches(asked, known, n=1)
    return f": did you mean {near[0]}?" if near else f"; the latest is {known[-1]}"


def _refuse_sweep(path: Path) -> None:
    """Refuse a sweep in place of a run. Raises InputError with the names of its runs."""
    from experiments.campaigns.sweepdir import SweepDirectory
    from experiments.records.rundir import POINTS
    from topologies.errors import InputError
    from topologies.first_texts import listed

    sweep = SweepDirectory(path)
    if not sweep.sweep_json.is_file():
        return
    names = sorted(f"{POINTS}/{run.parent.name}" for run in sweep.points.glob("*/run.json"))
    known = listed(names, NAMED_MAX) or "there are none yet"
    raise InputError(str(path), None, "", f"is a sweep: name one of its runs, below it: {known}")


def _unpacked(archive: Path, runs: Path) -> Path:
    """Return the directory of a packed run. Raises InputError."""
    import click

    from experiments.archives.unpacking import unpacked
    from topologies.errors import InputError

    if not archive.is_file():
        raise InputError(str(archive), None, "", "there is no such packed run")
    path, just_now = unpacked(archive, runs)
    click.echo(f"{'unpacked to' if just_now else 'already unpacked to'} {path}", err=True)
    return path
