"""How long streams take to flow again after the last change of a run, for each value of a swept field.

Medians over runs, with the least and the most: of a few dozen runs the worst is what a bound must hold for.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from analysis.pages.charting.model import Axis, Series
from analysis.pages.report.sweep_charts import SweepChart
from analysis.sweeps import Sweep, SweptRun
from experiments.sweep import value_text
from topologies.palette import colour_of

FIGURES = (("full_s", "all of it"), ("beyond_way_s", "less the new way"))
SIDEWAYS = 0.1  # so that bars do not cover each other
NOTE = (
    "Points are medians over runs, and bars reach from the least to the most. Runs in which a stream stays"
    " stalled have no such time: see what was expected."
)


def convergence_charts(sweep: Sweep) -> tuple[SweepChart, ...]:
    """One plot along the field with the most values; none of a sweep in which nothing was changed."""
    counts = {axis: len((sweep.experiment.get("sweep") or {})[axis]) for axis in sweep.axes}
    runs = [run for run in sweep.measured if run.figure("convergence", "last_change_s")]
    if not counts or not runs:
        return ()
    axis = max(counts, key=lambda axis: counts[axis])
    names = list(dict.fromkeys(value_text(run.point.values.get(axis)) for run in runs))
    by_name = {
        name: [run for run in runs if value_text(run.point.values.get(axis)) == name] for name in names
    }
    lines = [_line(number, title, key, by_name) for number, (key, title) in enumerate(FIGURES)]
    return (
        SweepChart(
            key="convergence",
            title="Every stream flows again at every client",
            x=Axis(axis.split(".")[-1], kind="category", names=tuple(names)),
            y=Axis("since the last change, s", "s"),
            series=tuple(line for line in lines if line.x),
            note=NOTE,
        ),
    )


def _line(number: int, title: str, key: str, runs: Mapping[str, Sequence[SweptRun]]) -> Series:
    """Of one figure: a point for each name whose runs have it."""
    found = []
    for place, named in enumerate(runs.values()):
        known = [value for run in named if (value := run.figure("convergence", key)) is not None]
        if known:
            found.append((place + SIDEWAYS * (2 * number - 1), median(known), min(known), max(known)))
    x, y, low, high = zip(*found, strict=True) if found else ((), (), (), ())
    return Series(title, colour_of(number), x, y, low, high, label=title, form="bars")
