"""Verifies runs: their files against the hashes of their archive, their claims against their captures.

The analysis is done again in a folder of its own beside the run, which has the run's captures and what its
nodes wrote down and nothing of the earlier analysis: no table, no index of a capture.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from analysis.claims import Broken, broken, claims
from analysis.errors import AnalysisError, check_measured
from analysis.pipeline import analyze
from experiments.crate import CRATE, packed_files
from experiments.json_files import read_json
from experiments.packing import check_captures
from experiments.rundir import RunDirectory
from experiments.sanitize import sanitize
from experiments.scratch import scratch
from experiments.sweepdir import SweepDirectory
from testbed.campaign import exit_codes
from testbed.campaign.in_use import reading
from testbed.campaign.progress import follower
from topologies.errors import InputError

NAMED_MAX: Final = 20
"""Of what does not hold, so much is named."""
_MADE: Final = ("analysis", "figures", "summary.json", "report.html", "comparison.html", CRATE, "claims.json")
"""What of a run's directory follows from the rest."""
_READ_BYTES: Final = 1 << 20


def verify(found: RunDirectory | SweepDirectory) -> int:
    """Verify a run, or all of a sweep that were analysed; returns the exit code. Raises InputError."""
    runs = _runs(found)
    with reading(found.path):
        wrong = list(_changed_files(found.path))
        _tell("files", wrong)
        holds = not wrong
        for run in runs:
            holds &= _verify_run(run)
    click.echo("verified: everything holds" if holds else "not verified: see above")
    return exit_codes.FINE if holds else exit_codes.FAILED


def _runs(found: RunDirectory | SweepDirectory) -> list[RunDirectory]:
    """Raises InputError if there is nothing that could be verified."""
    runs = [found] if isinstance(found, RunDirectory) else [found.run_of(run) for run in found.read().made]
    analysed = [run for run in runs if run.summary_json.is_file()]
    if not analysed:
        raise InputError(str(found.path), None, "", "claims nothing: it was not analysed")
    for run in analysed:
        check_measured(run)
        check_captures(run)
    return analysed


def _verify_run(run: RunDirectory) -> bool:
    claimed = run.read_summary()
    with scratch(".verifying-", run.path.absolute().parent) as folder, follower(terse=run.name) as follow:
        try:
            found = analyze(_bare(run, folder), progress=follow.say)
        except AnalysisError as error:
            found, problem = {}, str(error)
        else:
            problem = ""
    wrong = [_line(each) for each in broken(claimed, found)] if found else [problem]
    total = len(claims(claimed))
    click.echo(f"{run.path}: {total - min(total, len(wrong))} of {total} claims hold")
    _tell(run.name, wrong)
    return not wrong


def _bare(run: RunDirectory, folder: Path) -> RunDirectory:
    """The run without what follows from the rest. Its name stays: the summary says it."""
    bare = RunDirectory(folder / run.name)
    bare.path.mkdir()
    for entry in sorted(run.path.iterdir()):
        if entry.name in _MADE or entry.is_symlink():
            continue
        if entry.is_dir():
            _link_files(entry, bare.path / entry.name)
        elif entry.is_file():
            shutil.copyfile(entry, bare.path / entry.name)
    for place in (bare.captures, bare.logs, bare.deliveries, bare.analysis, bare.figures):
        place.mkdir(exist_ok=True)
    for index in bare.captures.glob("*.index"):
        index.unlink()
    return bare


def _link_files(source: Path, target: Path) -> None:
    """The files of a folder under a second name, which takes no room; copies, where that cannot be."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_symlink():
            continue
        if entry.is_dir():
            _link_files(entry, target / entry.name)
            continue
        try:
            os.link(entry, target / entry.name)
        except OSError:
            shutil.copyfile(entry, target / entry.name)


def _changed_files(directory: Path) -> Iterator[str]:
    """What is not as its archive packed it; nothing of a run that did not come in one. Raises InputError."""
    if not (directory / CRATE).is_file():
        click.echo(f"{directory}: came in no archive, so that its files have no hashes", err=True)
        return
    packed = packed_files(read_json(directory / CRATE))
    there = {path.relative_to(directory).as_posix(): path for path in _all_files(directory)}
    for path, known in sorted(packed.items()):
        file = there.pop(path, None)
        if file is None:
            yield f"{path}: was packed, and is not there"
        elif file.stat().st_size != known.size or _sha256(file) != known.sha256:
            yield f"{path}: is not as it was packed"
    for path in sorted(there.keys() - {CRATE}):
        if not path.endswith(".index"):  # reading captures makes these
            yield f"{path}: was not packed"
    click.echo(f"{directory}: {len(packed)} files held against their hashes")


def _all_files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        yield from (Path(folder, name) for name in names)


def _sha256(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while content := stream.read(_READ_BYTES):
            digest.update(content)
    return digest.hexdigest()


def _line(each: Broken) -> str:
    return f"{each.figure}: claimed {_shown(each.claimed)}, found {_shown(each.found)}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _tell(what: str, wrong: Sequence[str]) -> None:
    for line in wrong[:NAMED_MAX]:
        click.echo(f"  {sanitize(line)}")
    if len(wrong) > NAMED_MAX:
        click.echo(f"  and {len(wrong) - NAMED_MAX} more of {what}")
