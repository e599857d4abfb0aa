"""Verification of runs: source files against the archive's hashes, claims against the captures.

The analysis is repeated in a folder beside the run that has the run's captures and its nodes' records, but
no tables or capture indexes of the earlier analysis. The result is compared with summary.json, claims.json
and the tables of timelines. Pages and pictures are not compared. Hashes are not signed, so they detect
damage, not forgery.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.claims import BrokenClaim, broken_claims, claim_differences, claims
from analysis.errors import AnalysisError, check_measured
from analysis.pipeline import analyze
from experiments.archives.packing import CLAIMS, SUMS, check_captures, read_sums
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.files.sanitize import sanitize
from experiments.files.scratch import scratch
from experiments.records.json_files import read_json
from experiments.records.rundir import INDEX, POINTS, RunDirectory
from testbed.campaign import exit_codes
from testbed.campaign.in_use import reading
from testbed.campaign.reproduction.archived_run import digest_of_file, opened_archive
from testbed.campaign.texts.progress import follower
from topologies.errors import InputError

NAMED_MAX: Final = 20
"""At most this many mismatches are listed."""
_MADE: Final = ("analysis", "figures", "summary.json", "report.html", "comparison.html", SUMS, CLAIMS)
"""Files and folders of a run's directory that are derived from the rest."""
_OF_SWEEPS: Final = ("systems.html", "systems.png", "systems.svg")


def verify_archive(archive: Path, name: str) -> int:
    """Verify the content of an archive, without using folders unpacked from it earlier.

    name: as the user gave it.
    """
    with opened_archive(archive) as found:
        if not (found.path / SUMS).is_file():
            click.echo(f"{name}: has no hashes: an older version packed it, or they were removed")
            click.echo("not verified: see above")
            return exit_codes.FAILED
        return verify(found)


def verify(found: RunDirectory | SweepDirectory) -> int:
    """Verify a run, or all runs of a sweep; return the exit code. Raises InputError."""
    runs, unknown = _runs(found)
    with reading(found.path):
        wrong = [*unknown, *_changed_files(found.path)]
        _print_problems("files", wrong)
        holds = not wrong
        for run in runs:
            holds &= _verify_run(run)
    click.echo("verified: everything holds" if holds else "not verified: see above")
    return exit_codes.FINE if holds else exit_codes.FAILED


def _runs(found: RunDirectory | SweepDirectory) -> tuple[list[RunDirectory], list[str]]:
    """Return the runs with claims, and a line for each other run of a sweep.

    Raises InputError if no run can be verified.
    """
    runs = [found] if isinstance(found, RunDirectory) else [found.run_of(run) for run in found.read().made]
    analysed = [run for run in runs if run.summary_json.is_file()]
    if not analysed:
        raise InputError(str(found.path), None, "", "claims nothing: it was not analysed")
    for run in analysed:
        check_measured(run)
        check_captures(run)
    return analysed, [f"{run.name}: was not analysed" for run in runs if run not in analysed]


def _verify_run(run: RunDirectory) -> bool:
    claimed = run.read_summary()
    with scratch(".verifying-", run.path.absolute().parent) as folder, follower(terse=run.name) as follow:
        bare = _bare(run, folder)
        try:
            found = analyze(bare, progress=follow.say)
        except AnalysisError as error:
            wrong = [str(error)]
        else:
            wrong = [_line(each) for each in broken_claims(claimed, found)]
            wrong += _wrong_claims(run, found)
            wrong += [f"table {name}: differs from the captures" for name in _wrong_tables(run, bare)]
    total = len(claims(claimed))
    click.echo(f"{sanitize(str(run.path))}: {total - min(total, len(wrong))} of {total} claims hold")
    _print_problems(run.name, wrong)
    return not wrong


def _wrong_claims(run: RunDirectory, found: dict[str, Any]) -> Iterator[str]:
    """Yield the mismatches of claims.json, which exists in an unpacked archive."""
    path = run.path / CLAIMS
    if path.is_file():
        for each in claim_differences(read_json(path), found):
            yield f"{CLAIMS}: {each}"


def _wrong_tables(run: RunDirectory, bare: RunDirectory) -> Iterator[str]:
    """Yield the names of timeline tables whose content differs in the repeated analysis."""
    for made in sorted(bare.analysis.glob("*.parquet")):
        theirs = run.analysis / made.name
        if made.is_file() and theirs.is_file() and not _same(theirs, made):
            yield made.stem


def _same(one: Path, other: Path) -> bool:
    try:
        return bool(pq.read_table(one).equals(pq.read_table(other)))
    except (pa.ArrowException, OSError):
        return False


def _bare(run: RunDirectory, folder: Path) -> RunDirectory:
    """Return a copy of the run without derived files. Its name stays, because the summary contains it."""
    bare = RunDirectory(folder / run.name)
    bare.path.mkdir()
    for current, folders, names in os.walk(run.path):
        here = Path(current).relative_to(run.path)
        folders[:] = [
            name
            for name in folders
            if not (Path(current) / name).is_symlink() and not (here == Path() and name in _MADE)
        ]
        (bare.path / here).mkdir(exist_ok=True)
        for name in names:
            is_made = here == Path() and name in _MADE
            if not is_made and not (here.name == "captures" and name.endswith(INDEX)):
                _give(Path(current) / name, bare.path / here / name)
    for place in (bare.captures, bare.logs, bare.deliveries, bare.analysis, bare.figures):
        place.mkdir(exist_ok=True)
    return bare


def _give(source: Path, target: Path) -> None:
    """Link a file to a second path, which takes no space; copy it if linking is not possible."""
    if source.is_symlink() or not source.is_file():
        return
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _changed_files(directory: Path) -> Iterator[str]:
    """Yield the source files that differ from the archive's hashes. Raises InputError."""
    if not (directory / SUMS).is_file():
        click.echo(f"{sanitize(str(directory))}: has no hashes of an archive", err=True)
        return
    packed = read_sums(directory / SUMS)
    there = {path.relative_to(directory).as_posix(): path for path in _all_files(directory)}
    sources = {path: digest for path, digest in packed.items() if not _follows(path)}
    for path, digest in sorted(sources.items()):
        file = there.pop(path, None)
        if file is None:
            yield f"{path}: was packed, but is missing"
        elif _sha256(file) != digest:
            yield f"{path}: has changed since it was packed"
    for path in sorted(there.keys() - packed.keys()):
        if not _follows(path):
            yield f"{path}: was not packed"
    click.echo(f"{sanitize(str(directory))}: {len(sources)} files compared with their hashes")


def _follows(path: str) -> bool:
    """Return whether a file, by its path below a run or a sweep, is derived from others by analysis."""
    parts = path.split("/")
    parts = parts[2:] if parts[0] == POINTS and len(parts) > 2 else parts
    is_index = len(parts) == 2 and parts[0] == "captures" and parts[1].endswith(INDEX)
    return is_index or parts[0] in _MADE or (len(parts) == 1 and parts[0] in _OF_SWEEPS)


def _all_files(directory: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(directory):
        yield from (Path(folder, name) for name in names)
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())


def _sha256(path: Path) -> str:
    return "" if path.is_symlink() or not path.is_file() else digest_of_file(path)


def _line(each: BrokenClaim) -> str:
    return f"{each.figure}: claimed {_shown(each.claimed)}, found {_shown(each.found)}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _print_problems(what: str, wrong: Sequence[str]) -> None:
    for line in wrong[:NAMED_MAX]:
        click.echo(f"  {sanitize(line)}")
    if len(wrong) > NAMED_MAX:
        click.echo(f"  and {len(wrong) - NAMED_MAX} more of {what}")
