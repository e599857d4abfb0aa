"""The runs of a comparison: each with a letter, a colour, and its analysed run."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.pages.report.run_reader import AnalysedRun, read_record
from experiments.records.rundir import RunDirectory
from topologies.drawing.palette import REGION_COLOURS
from topologies.errors import InputError

RUNS_MAX = 7  # number of distinguishable colours, with ink for the first run
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_INK = "var(--muted)"
_COLOURS = (_INK, REGION_COLOURS[1], REGION_COLOURS[0], *REGION_COLOURS[2:])


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run."""

    letter: str
    colour: str  # CSS colour
    directory: RunDirectory
    record: AnalysedRun

    @property
    def name(self) -> str:
        """The run directory's name."""
        return self.record.name or self.directory.name

    @property
    def named(self) -> str:
        """Its letter and its name."""
        return f"{self.letter} {self.name}"

    @property
    def experiment(self) -> str:
        """The experiment's name."""
        return str(self.record.experiment.get("name") or self.record.summary.get("experiment") or "")


def read_sides(runs: Sequence[RunDirectory]) -> tuple[ComparedRun, ...]:
    """Read the runs. Raises InputError if there are too few or too many, or one is not analysed."""
    if not 2 <= len(runs) <= RUNS_MAX:
        raise InputError("RUN", None, "", f"a comparison takes 2 to {RUNS_MAX} runs (got {len(runs)})")
    return tuple(ComparedRun(LETTERS[i], _COLOURS[i], run, read_record(run)) for i, run in enumerate(runs))
