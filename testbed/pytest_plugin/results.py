"""The return value of `cutset.run`: the summaries of its runs as attributes, and the runs themselves."""

from collections.abc import Callable, Sequence

from testbed.campaign.sweeps.made_runs import MadeRun
from testbed.pytest_plugin.figures import Figures, FigureSource, SummarySection

__tracebackhide__ = True  # pytest shows a failure at the line of the test, not here


class RunResults(SummarySection):
    """The runs of one call, and their summaries: `run.latency.p99_ms.p95`, `run.events.lost == 0`.

    It has the names of summary.json and those below.
    """

    def __init__(self, runs: Sequence[MadeRun], on_read: Callable[["RunResults"], None]) -> None:
        """on_read: called when a test reads a figure."""
        nodes = [(_source(run), run.summary or {}) for run in runs]
        super().__init__("", nodes)
        self._runs = tuple(runs)
        self._on_read = on_read

    @property
    def runs(self) -> tuple[MadeRun, ...]:
        """The runs: their directory, report, seed, run.json (`record`) and summary.json (`summary`)."""
        return self._runs

    @property
    def valid(self) -> bool:
        """Whether each run was executed as planned, so its numbers are valid."""
        return all(run.summary is not None and run.summary["fidelity"]["valid"] for run in self._runs)

    @property
    def passed(self) -> bool:
        """Whether each run was valid and met its experiment's own expectations."""
        return all(run.summary is not None and run.summary["verdict"] == "passed" for run in self._runs)

    def __repr__(self) -> str:
        verdicts = ", ".join(run.verdict for run in self._runs)
        return f"<{self._runs[0].record['experiment']['name']}: {verdicts}>"

    def _part(self, name: str) -> SummarySection | Figures:
        self._on_read(self)
        if all(run.summary is None for run in self._runs):
            raise AttributeError(f"there is no {name}: {self!r} has no summary")
        return super()._part(name)


def _source(run: MadeRun) -> FigureSource:
    invalid = run.summary is not None and not run.summary["fidelity"]["valid"]
    return FigureSource(run.directory.name, invalid)
