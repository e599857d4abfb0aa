"""The directory of a sweep: one run directory for every combination of values and repetition, below one roof.

    runs/<UTC time>-<experiment>-<6 hex>/
      sweep.json       what is swept, and what became of each run
      report.html      one page for all of it
      figures/
      points/<number>-<values>-r<repetition>/     a run directory like any other

Every path of it stands here and nowhere else, and none is read: paths follow from the names that the plan
gives. sweep.json has one writer, and a crash at any moment leaves the
old content or the new. A run that does not stand in it as ended was torn and is made again on resumption.
"""

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from experiments.json_files import read_json, write_json
from experiments.plain_name import plain_name, refuse_link
from experiments.rundir import POINTS, RunDirectory, check_encoding
from experiments.sweep import SweepRun, value_text
from topologies.errors import InputError

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class PointRecord:
    """A run of a sweep in sweep.json, and what became of it. Paths count from the sweep's directory."""

    name: str
    number: int  # of the combination, from 1
    values: dict[str, Any]  # by dotted path
    repetition: int  # from 0
    seed: int
    run: str  # "points/<name>"
    summary: str  # "points/<name>/summary.json", there once it was analysed
    outcome: str | None = None  # completed, crashed; None: not yet, or torn
    verdict: str | None = None  # summary.json's; None: not analysed
    problem: str | None = None  # why there is no verdict
    duration_s: float | None = None  # of wall clock, analysis included
    headline: dict[str, Any] = field(default_factory=dict)  # see `testbed.sweeps.headline`

    @classmethod
    def planned(cls, run: SweepRun) -> Self:
        """Before anything became of it."""
        place = f"{POINTS}/{run.name}"
        return cls(
            run.name,
            run.number,
            dict(run.values),
            run.repetition,
            run.seed,
            place,
            f"{place}/summary.json",
        )

    def in_its_place(self, sweep_json: Path) -> Self:
        """The record with the paths that its name has, whatever it says. Raises InputError."""
        place = f"{POINTS}/{plain_name(self.name, sweep_json)}"
        return replace(self, run=place, summary=f"{place}/summary.json")

    @property
    def ended(self) -> bool:
        """Whether it ran to its end, so that it is not run again."""
        return self.outcome == "completed"


@dataclass(frozen=True, slots=True)
class SweepDirectory:
    """A sweep's directory, there or not yet there."""

    path: Path

    @classmethod
    def create(cls, out: Path, experiment_name: str, now: datetime, token: str) -> Self:
        """Make the directory of a new sweep below `out`; named as a run is. Raises OSError."""
        sweep = cls(out / f"{now:%Y%m%dT%H%M%SZ}-{experiment_name}-{token}")
        check_encoding(sweep.path)
        sweep.points.mkdir(parents=True)
        return sweep

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing sweep. Raises InputError if there is none."""
        check_encoding(path)
        sweep = cls(path)
        if not sweep.sweep_json.is_file():
            raise InputError(str(path), None, "", "is no directory of a sweep: it has no sweep.json")
        return sweep

    @property
    def name(self) -> str:
        """The sweep's name: that of its directory."""
        return self.path.absolute().name

    @property
    def sweep_json(self) -> Path:
        """What is swept, and what became of each run."""
        return self.path / "sweep.json"

    @property
    def report_html(self) -> Path:
        """The page for the whole sweep."""
        return self.path / "report.html"

    @property
    def figures(self) -> Path:
        """The folder of PNG and SVG figures."""
        return self.path / "figures"

    @property
    def points(self) -> Path:
        """The folder of run directories."""
        return self.path / POINTS

    def figure(self, name: str, extension: str) -> Path:
        """A figure, as "png" or "svg"."""
        return self.figures / f"{name}.{extension}"

    def run_of(self, point: PointRecord) -> RunDirectory:
        """The run directory of a point, there or not yet there."""
        return RunDirectory(self.points / plain_name(point.name, self.sweep_json))

    def make_run(self, point: PointRecord) -> RunDirectory:
        """An empty run directory for a point; what an earlier attempt left is taken away. Raises OSError,
        and InputError if it would be taken away elsewhere.
        """
        run = self.run_of(point)
        refuse_link(self.points)
        refuse_link(run.path)
        shutil.rmtree(run.path, ignore_errors=True)
        run.make()
        return run

    def read(self) -> "SweepRecord":
        """The content of sweep.json. Raises InputError if it cannot be read."""
        content = read_json(self.sweep_json)
        try:
            points = tuple(PointRecord(**point).in_its_place(self.sweep_json) for point in content["points"])
            expectations = tuple(content.get("expectations", ()))
            return SweepRecord(**{**content, "points": points, "expectations": expectations})
        except (KeyError, TypeError) as error:
            raise InputError(str(self.sweep_json), None, "", f"is no record of a sweep: {error}") from None

    def write(self, record: "SweepRecord") -> None:
        """Write sweep.json."""
        write_json(self.sweep_json, asdict(record))


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """The content of sweep.json."""

    sweep: str
    experiment: dict[str, Any]  # as it is in its file, overrides included
    place: str  # local, simulator
    links: str
    seed: int  # of repetition 0
    repeat: int
    digest: str  # of everything that decides what runs
    commit: str | None
    started_ns: int
    points: tuple[PointRecord, ...]
    ended_ns: int | None = None
    outcome: str | None = None  # completed, interrupted, crashed
    expectations: tuple[dict[str, Any], ...] = ()  # of all runs together: see `SweepExpectation.evaluate`
    schema: int = SCHEMA

    def with_point(self, point: PointRecord) -> "SweepRecord":
        """The record with this point's new state."""
        return replace(self, points=tuple(point if old.name == point.name else old for old in self.points))


def replay_command(
    experiment: str, overrides: Sequence[str], point: PointRecord | SweepRun, place: str
) -> str:
    """The command that makes this one run again. `experiment` as it was given, `overrides` to `--set`."""
    values = [f"{path}={value_text(value)}" for path, value in point.values.items()]
    settings = [*overrides, *(["sweep=null"] if values else []), *values]
    options = [f"--set {shlex.quote(setting)}" for setting in settings]
    last = [f"--seed {point.seed}", "--repeat 1", f"--on {shlex.quote(place)}"]
    return " ".join(["cutset run", shlex.quote(experiment), *options, *last])
