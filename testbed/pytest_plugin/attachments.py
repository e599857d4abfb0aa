"""The runs that a test read: named with their reports in its failure's text, and in JUnit's properties."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testbed.pytest_plugin.groups import kept_together

if TYPE_CHECKING:
    from testbed.campaign.sweeps.made_runs import MadeRun
    from testbed.pytest_plugin.results import RunResults

SECTION = "cutset: the runs of this test"
RUN, REPORT = "cutset_run", "cutset_report"
"""Names of JUnit's properties."""

_LOOKED_AT = pytest.StashKey[dict[str, "MadeRun"]]()


class Attachments:
    """Records the runs that the current test reads, and adds them to its report."""

    def __init__(self, write_report: Callable[["MadeRun"], Path | None]) -> None:
        """write_report: writes a run's report unless it exists; returns its path, or None if it has none."""
        self._write_report = write_report
        self.item: pytest.Item | None = None

    @property
    def folder(self) -> Path:
        """The folder of the test's file; without a test, the working directory."""
        return self.item.path.parent if self.item is not None else Path.cwd()

    @property
    def beside_others(self) -> bool:
        """Whether other processes may make runs now.

        These are other workers of pytest-xdist, unless the test belongs to a group, which has its own worker.
        """
        if self.item is None or not hasattr(self.item.config, "workerinput"):
            return False
        return not (kept_together(self.item.config) and self.item.get_closest_marker("xdist_group"))

    def note(self, results: "RunResults") -> None:
        """Record that the current test read these results."""
        if self.item is None:
            return
        seen = self.item.stash.setdefault(_LOOKED_AT, {})
        for run in results.runs:
            if run.directory.name not in seen:
                seen[run.directory.name] = run
                self.item.user_properties.append((RUN, str(run.directory.path)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Set the current test while it runs."""
        self.item = item
        try:
            return (yield)
        finally:
            self.item = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the runs to the report of a failed phase."""
        report = yield
        seen = item.stash.get(_LOOKED_AT, {})
        if report.failed and seen:
            report.sections.append((SECTION, "\n".join(self._described(run, item) for run in seen.values())))
        return report

    def _described(self, run: "MadeRun", item: pytest.Item) -> str:
        page = self._write_report(run)
        lines = [f"{run.verdict}, seed {run.seed}", f"  run     {run.directory.path}"]
        if page is not None:
            lines.append(f"  report  {page}")
            if (REPORT, str(page)) not in item.user_properties:
                item.user_properties.append((REPORT, str(page)))
        return "\n".join([*lines, f"  again   {run.replay}"])
