"""Texts about a repeated run: each claim with its value in the archive and here, and the conclusion."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from analysis.claims import is_number
from analysis.reproduction import ClaimVerdict, JudgedClaim
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord
from experiments.files.sanitize import sanitize
from experiments.overrides import leaf_text, leaves
from experiments.records.run_record import RunRecord, record_to_json
from experiments.records.summary import METRICS
from testbed.campaign.reproduction.archived_run import ArchivedRun
from testbed.campaign.sweeps.sweep_outcome import not_passed
from testbed.campaign.texts.campaign_text import result_text, runs_text, title
from testbed.campaign.texts.outcome import number

NAMED_MAX: Final = 40
"""At most this many claims that differ or are undecided are shown; of the others only the headlines."""
RUNS_MAX: Final = 10
_COLOURS: Final = {ClaimVerdict.HOLDS: "green", ClaimVerdict.DIFFERS: "red", ClaimVerdict.UNDECIDED: "yellow"}
_HEADLINES: Final = ("verdict", *(section for section in METRICS if section != "fidelity"), "recovery")
_RAN: Final = ("commit", "versions", "machine", "links", "shaping", "tcp")
"""The fields of run.json that describe code, versions, machine and network."""
_WIDTH_MAX: Final = 44


@dataclass(frozen=True, slots=True)
class ReproductionResult:
    """The result of repeating a run.

    measured: the number of valid repeats. exact: whether results must be exactly equal. changed: files of
    deliveries that differ. here: the record of a completed repeat; None if there is none.
    """

    archived: ArchivedRun
    directory: SweepDirectory
    record: SweepRecord
    judged: tuple[JudgedClaim, ...]
    measured: int
    exact: bool
    changed: tuple[str, ...]
    here: RunRecord | None

    def count(self, verdict: ClaimVerdict) -> int:
        """Return how many claims have this verdict."""
        return sum(each.verdict is verdict for each in self.judged)

    @property
    def reproduced(self) -> bool:
        """Whether there are claims, and all of them hold."""
        return bool(self.judged) and self.count(ClaimVerdict.HOLDS) == len(self.judged) and not self.changed


def show_interrupted(given: Sequence[str], directory: SweepDirectory) -> None:
    """Print how to continue. given: the run and the options, as the user gave them."""
    words = ["cutset", "reproduce", *given, "--resume", str(directory.path)]
    click.echo(f"interrupted: continue with `{shlex.join(words)}`")


def show_reproduced(found: ReproductionResult) -> None:
    """Print the result."""
    for line in _about_runs(found):
        click.echo(sanitize(line))
    _show_table(found.judged)
    for name in found.changed[:NAMED_MAX]:
        click.echo(f"  deliveries/{sanitize(name)}: differs from the archive")
    left = len(found.archived.claims) - len(found.judged)
    if left:
        click.echo(f"not judged: {left} that describe only the archived run (its name, notes, machine)")
    click.echo(f"repeats in {sanitize(str(found.directory.path))}")
    click.echo(last_line(found))


def last_line(found: ReproductionResult) -> str:
    """Return the conclusion in one line."""
    total, differ = len(found.judged), found.count(ClaimVerdict.DIFFERS)
    if found.reproduced:
        same = f", and {len(found.archived.deliveries)} files of deliveries are the same to the byte"
        exactly = f" exactly, in virtual time{same}" if found.exact else ""
        return f"reproduced: all {total} claims hold{exactly}"
    if not found.measured:
        return f"not reproduced: none of {len(found.record.runs)} repeats were valid"
    parts = [f"{differ} of {total} claims differ"] if differ else []
    if undecided := found.count(ClaimVerdict.UNDECIDED):
        parts.append(f"{undecided} of {total} claims are undecided")
    if found.changed:
        parts.append(f"{len(found.changed)} of {len(found.archived.deliveries)} files of deliveries differ")
    return f"not reproduced: {', '.join(parts) or 'no claim can be judged'}"


def _about_runs(found: ReproductionResult) -> Iterator[str]:
    record = found.archived.record
    where = "in virtual time" if record.simulated else "with real processes"
    verdict = next((str(each.value) for each in found.archived.claims if each.figure == "verdict"), "unknown")
    yield f"archived: {record.plan.experiment}, seed {record.plan.seed}, {where}, {verdict}"
    yield f"here: {runs_text(found.record)}, with the archive's plan and seed"
    for run in not_passed(found.record)[:RUNS_MAX]:
        yield f"  {run.name} {title(run)}: {result_text(run)}"
    if found.here is not None:
        yield differences(record, found.here)


def differences(there: RunRecord, here: RunRecord) -> str:
    """Return the differences of code, versions and machine between two runs, in one line."""
    was, now = _ran_with(there), _ran_with(here)
    changed = [
        f"{path} {was.get(path, 'unknown')} -> {now.get(path, 'unknown')}"
        for path in dict.fromkeys([*was, *now])
        if was.get(path) != now.get(path)
    ]
    return (
        f"differences from the archive: {', '.join(changed)}"
        if changed
        else "machine and versions: as in the archive"
    )


def _ran_with(record: RunRecord) -> dict[str, str]:
    content = record_to_json(record)
    return {path: _field_text(path, value) for key in _RAN for path, value in leaves(content.get(key), key)}


def _field_text(path: str, value: Any) -> str:
    if path == "commit" and isinstance(value, str):
        commit, dash, changed = value.partition("-")
        return f"{commit[:10]}{dash}{changed}"
    if path.endswith("memory_bytes") and is_number(value):
        return f"{value / 2**30:.1f} GiB"
    return leaf_text(value)


def _show_table(judged: Sequence[JudgedClaim]) -> None:
    if whys := {each.why for each in judged if each.verdict is ClaimVerdict.UNDECIDED}:
        [why, *others] = whys
        if not others and all(
            each.why == why for each in judged
        ):  # one line instead of a table of equal rows
            click.echo(f"  all {len(judged)} claims are {ClaimVerdict.UNDECIDED}: {why}")
            return
    wrong = sorted((each for each in judged if each.verdict is not ClaimVerdict.HOLDS), key=_order)
    shown = wrong[:NAMED_MAX] + [
        each for each in judged if each.verdict is ClaimVerdict.HOLDS and _is_headline(each.claim.figure)
    ]
    rows = [("claim", "archived", "here", ""), *(_row(each) for each in shown)]
    widths = [min(max(len(row[column]) for row in rows), _WIDTH_MAX) for column in range(3)]
    for row, each in zip(rows, [None, *shown], strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        verdict = row[3] if each is None else click.style(row[3], fg=_COLOURS[each.verdict])
        click.echo(f"  {'  '.join(cells)}  {verdict}".rstrip())
    if len(wrong) > NAMED_MAX:
        click.echo(f"  and {len(wrong) - NAMED_MAX} more that do not hold")
    counts = Counter(each.verdict for each in judged if not any(each is one for one in shown))
    if counts[ClaimVerdict.HOLDS]:
        click.echo(f"  and {counts[ClaimVerdict.HOLDS]} more that hold")


def _order(each: JudgedClaim) -> tuple[bool, bool]:
    """Return a sort key: claims that differ first, headlines first among them."""
    return each.verdict is not ClaimVerdict.DIFFERS, not _is_headline(each.claim.figure)


def _is_headline(figure: str) -> bool:
    return figure.partition(".")[0] in _HEADLINES


def _row(each: JudgedClaim) -> tuple[str, str, str, str]:
    claim = each.claim
    bar = f" ±{number(claim.bar)}" if claim.bar else ""
    archived, here = _shown(claim.value), _shown(each.here)
    if (
        each.verdict is ClaimVerdict.DIFFERS and archived == here
    ):  # they differ in digits that are usually not shown
        archived, here = repr(claim.value), repr(each.here)
    if each.low is not None and each.high is not None:
        low, high = number(each.low), number(each.high)
        here += f" ({low} to {high})" if low != high else ""
    why = f": {each.why}" if each.why else ""
    cells = (claim.figure, f"{archived}{bar}", here, f"{each.verdict}{why}")
    figure, archived, here, verdict = (sanitize(cell) for cell in cells)
    return figure, archived, here, verdict


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return number(value) if is_number(value) else str(value)
