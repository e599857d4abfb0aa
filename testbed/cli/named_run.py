"""How a command's RUN argument names a run or a sweep: a path, a name below runs/, `latest`, or a packed run.

A packed run is unpacked below runs/ first, and stays there.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from experiments.rundir import RUNS

if TYPE_CHECKING:
    from experiments.rundir import RunDirectory
    from experiments.sweepdir import SweepDirectory

LATEST = "latest"
PACKED = ".tar.zst"


def named_run(name: str, runs: Path = RUNS) -> "RunDirectory":
    """The run of that name. Raises InputError if there is none, or if it is no run directory."""
    from experiments.rundir import RunDirectory

    return RunDirectory.open(_named(name, runs))


def named_sweep(name: str, runs: Path = RUNS) -> "SweepDirectory":
    """The sweep of that name. Raises InputError if there is none, or if it is no sweep's directory."""
    from experiments.sweepdir import SweepDirectory

    return SweepDirectory.open(_named(name, runs))


def named(name: str, runs: Path = RUNS) -> "RunDirectory | SweepDirectory":
    """The run or the sweep of that name. Raises InputError if there is none."""
    from experiments.rundir import RunDirectory
    from experiments.sweepdir import SweepDirectory

    path = _named(name, runs)
    sweep = SweepDirectory(path)
    return sweep if sweep.sweep_json.is_file() else RunDirectory.open(path)


def run_names(runs: Path) -> list[str]:
    """The runs and sweeps below a folder, oldest first: their names begin with their time."""
    return sorted(path.parent.name for kind in ("run", "sweep") for path in runs.glob(f"*/{kind}.json"))


def _named(name: str, runs: Path) -> Path:
    from topologies.errors import InputError

    if name.endswith(PACKED):
        return _unpacked(Path(name), runs)
    known = run_names(runs)
    if name == LATEST and not Path(name).exists():
        if not known:
            raise InputError(name, None, "", f"there are no runs in {runs}/ yet: `cutset run` makes one")
        return runs / known[-1]
    found = next((path for path in (Path(name), runs / name) if path.is_dir()), None)
    if found is None:
        from topologies.strict import suggestion  # slow to import, and seldom needed

        advice = suggestion(name, known[-1:]) if known else f"; there are no runs in {runs}/ yet"
        raise InputError(name, None, "", f"there is no such run{advice}")
    return found


def _unpacked(archive: Path, runs: Path) -> Path:
    """The directory of a packed run. Raises InputError."""
    import click

    from experiments.unpacking import unpacked
    from topologies.errors import InputError

    if not archive.is_file():
        raise InputError(str(archive), None, "", "there is no such packed run")
    path, just_now = unpacked(archive, runs)
    click.echo(f"{'unpacked to' if just_now else 'was unpacked before, to'} {path}", err=True)
    return path
