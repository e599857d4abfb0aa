"""The systems of a comparison: each with its name, its runs over repetitions, and the common fault."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.pages.report.charts.bands import bands
from analysis.pages.report.run_reader import AnalysedRun, read_record
from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweep import VARIANT
from experiments.campaigns.sweepdir import SweepDirectory, SweepRun
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError


@dataclass(frozen=True, slots=True)
class SystemRun:
    """One repetition."""

    directory: RunDirectory
    record: AnalysedRun


@dataclass(frozen=True, slots=True)
class ComparedSystem:
    """One variant. runs: those that ran to their end and were analysed, by repetition.

    left_out: why it was not run; "" if it was. asked: number of requested runs.
    """

    name: str
    runs: tuple[SystemRun, ...]
    left_out: str = ""
    asked: int = 0

    @property
    def valid(self) -> tuple[SystemRun, ...]:
        """The valid runs."""
        return tuple(run for run in self.runs if run.record.valid)

    @property
    def basis(self) -> tuple[SystemRun, ...]:
        """The runs behind its numbers: the valid ones, or all if none is valid."""
        return self.valid or self.runs

    @property
    def shown(self) -> AnalysedRun:
        """The run whose settings represent all."""
        return self.basis[0].record


def read_systems(directories: Sequence[SweepDirectory]) -> tuple[ComparedSystem, ...]:
    """Return the variants of sweeps, in their order.

    Raises InputError if one has none, or nothing is analysed.
    """
    found: dict[str, ComparedSystem] = {}
    for directory in directories:
        by_variant: dict[str, list[SweepRun]] = {}
        for run in directory.read().runs:
            if VARIANT in run.values:
                by_variant.setdefault(str(run.values[VARIANT]), []).append(run)
        if not by_variant:
            problem = "has no variants: --systems compares those of one sweep, such as link-failure-systems"
            raise InputError(str(directory.path), None, "", problem)
        for name, runs in by_variant.items():
            if name in found:
                raise InputError(str(directory.path), None, "", f"{name} is in several of these sweeps")
            found[name] = _system(directory, name, runs)
    if not any(system.runs for system in found.values()):
        raise InputError(str(directories[0].path), None, "", "no run is analysed yet: cutset analyze does it")
    return tuple(found.values())


def _system(directory: SweepDirectory, name: str, runs: Sequence[SweepRun]) -> ComparedSystem:
    made = []
    for run in runs:
        where = directory.run_of(run)
        if run.verdict not in {None, "crashed"} and where.summary_json.exists():
            made.append(SystemRun(where, read_record(where)))
    left_out = next((run.problem or "" for run in runs if run.state is RunState.SKIPPED), "")
    return ComparedSystem(name, tuple(made), "" if made else left_out, len(runs))


@dataclass(frozen=True, slots=True)
class RegionCut:
    """The first fault that separated two regions in a run, and its link.

    end_s: None if it lasted to the end.
    """

    fault: str
    link: str
    regions: tuple[str, str]
    start_s: float
    end_s: float | None


def cut_of(record: AnalysedRun) -> RegionCut | None:
    """Return the first fault on a link between regions; None if there is none."""
    ends = {link.name: (link.a, link.b) for link in record.wan_links}
    return next(
        (
            RegionCut(band.fault, band.links[0], ends[band.links[0]], band.start_s, band.end_s)
            for band in bands(record)
            if band.links and band.links[0] in ends
        ),
        None,
    )
