"""Runs for a caller that inspects the results: made one after another in this process, and analysed.

Prints nothing on standard output and judges nothing.
"""

import os.path
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import AnalysisError
from experiments.campaigns.sweepdir import SweepRun, replay_command
from experiments.loader import FOLDER
from experiments.records.run_record import record_to_json
from experiments.records.rundir import RunDirectory
from testbed.backends.backend import Backend
from testbed.campaign.backend_selection import open_backend
from testbed.campaign.in_use import sole_writer
from testbed.campaign.one_run import ExperimentRunRequest, make, prepare, write_page
from testbed.campaign.run_results import PerformedRun
from testbed.campaign.texts.progress import Follower
from testbed.errors import MachineError, TestbedError
from testbed.run_selection import RunSelection
from testbed.sweeps import Points, runs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeRun(PerformedRun):
    """A run with its results. replay: the command that repeats the run."""

    directory: RunDirectory
    seed: int
    replay: str

    @property
    def verdict(self) -> str:
        """The verdict of summary.json; without a summary, the outcome of the run."""
        return str(self.summary["verdict"] if self.summary else self.run_record.outcome or "broken")

    @property
    def record(self) -> dict[str, Any]:
        """The content of run.json as plain JSON."""
        return record_to_json(self.run_record)

    @property
    def report(self) -> Path | None:
        """The path of its report, if one was written."""
        path = self.directory.report_html
        return path if path.exists() else None


def make_runs(chosen: RunSelection, out: Path, *, analyze: bool, follow: Follower) -> Iterator[MadeRun]:
    """Make all runs of an experiment below `out`, each when the iterator reaches it.

    A run that broke is yielded with its problem. Raises InputError, MachineError if the backend cannot run
    the plan, and KeyboardInterrupt if the user ends a run, which is then not analysed.
    """
    points = Points(chosen)
    with open_backend(chosen.backend, follow.say) as backend:
        for run in runs_of(chosen):
            yield _made(run, points, backend, out, analyze=analyze, follow=follow)


def write_report(made: MadeRun, follow: Follower) -> None:
    """Write the report of an analysed run. A failure is only shown, because the run is still valid."""
    if made.summary is None:
        return
    try:
        with sole_writer(made.directory.path):
            write_page(made.directory, follow)
    except (AnalysisError, MachineError) as error:
        follow.show(f"problem: no report: {error}")


def _made(
    run: SweepRun,
    points: Points,
    backend: Backend,
    out: Path,
    *,
    analyze: bool,
    follow: Follower,
) -> MadeRun:
    chosen = points.chosen
    directory = prepare(ExperimentRunRequest(*points.inputs_of(run), run.seed, chosen.links), backend, out)
    follow.show(f"run {directory.path}")
    try:
        made = make(directory, backend, follow, analyze=analyze, page=lambda verdict: False)
    except MachineError:
        raise
    except (TestbedError, AnalysisError) as error:
        made = PerformedRun(directory.read_run(), problem=str(error))
    return MadeRun(
        made.run_record,
        made.summary,
        made.problem,
        directory=directory,
        seed=run.seed,
        replay=_replay(chosen, run),
    )


def _replay(chosen: RunSelection, run: SweepRun) -> str:
    file = chosen.file
    ours = file.folder == FOLDER
    origins = file.document.overridden.values()
    given = [origin.removeprefix("--set ") for origin in origins if origin.startswith("--set ")]
    one_point = [f"{field}=null" for field in ("sweep", "variants") if field in file.left_out]
    links = "" if chosen.links == "auto" else f" --links {chosen.links}"
    name = Path(file.document.file).stem if ours else os.path.normpath(file.document.file)
    return replay_command(name, [*given, *one_point], run, chosen.backend) + links
