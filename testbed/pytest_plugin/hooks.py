"""Hooks that pytest loads: options, the fixture `cutset`, groups."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testbed.pytest_plugin.attachments import Attachments
from testbed.pytest_plugin.groups import plugin_for

if TYPE_CHECKING:
    from testbed.campaign.sweeps.made_runs import MadeRun
    from testbed.pytest_plugin.fixture import Cutset

SUITE = "pytest"
"""The suite of the tests' runs in a history."""
_ATTACHING = pytest.StashKey[Attachments]()
_CUTSET = pytest.StashKey["Cutset"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --cutset-out and --cutset-history."""
    group = parser.getgroup("cutset", "runs of Cutset")
    group.addoption(
        "--cutset-out",
        metavar="DIR",
        help="The folder of runs; by default among pytest's temporary files.",
    )
    group.addoption(
        "--cutset-history",
        metavar="DIR",
        help="Write every analysed run into this history, for `cutset history`; needs --cutset-out.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins."""
    if config.getoption("cutset_history") and not config.getoption("cutset_out"):
        raise pytest.UsageError("--cutset-history needs --cutset-out: pytest removes its temporary files")
    attaching = config.stash[_ATTACHING] = Attachments(_with_report)
    config.pluginmanager.register(attaching, "cutset-attaching")
    groups = plugin_for(config)
    if groups is not None:
        config.pluginmanager.register(groups, "cutset-groups")


@pytest.fixture(scope="session")
def cutset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Cutset":
    """Return the maker of runs: `run = cutset.run("link-failure", repeat=3)`."""
    from experiments.campaigns.nights import night_of
    from testbed.campaign.recording import RunsOutsideNights
    from testbed.pytest_plugin.fixture import Cutset

    config = request.config
    attaching, started_in = config.stash[_ATTACHING], config.invocation_params.dir
    out, history = config.getoption("cutset_out"), config.getoption("cutset_history")
    night = night_of(datetime.now(UTC)).isoformat()
    made = config.stash[_CUTSET] = Cutset(
        started_in / out if out else tmp_path_factory.mktemp("cutset-runs"),
        beside=lambda: attaching.folder,
        on_read=attaching.note,
        recorder=RunsOutsideNights(started_in / history, SUITE, None, night) if history else None,
        beside_others=lambda: attaching.beside_others,
    )
    return made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the number of runs, their verdicts and their folder."""
    made = config.stash.get(_CUTSET, None)
    if made is not None and made.runs:
        verdicts = Counter(run.verdict for run in made.runs)
        noun = "run" if len(made.runs) == 1 else "runs"
        counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        terminalreporter.write_line(f"cutset: {len(made.runs)} {noun} ({counted}) in {made.out}")


def _with_report(run: "MadeRun") -> Path | None:
    """Write a run's report unless it exists; called when a test fails."""
    from testbed.campaign.sweeps.made_runs import write_report
    from testbed.campaign.texts.progress import Follower

    if run.report is None:
        write_report(run, Follower(run.directory.name))
    return run.report
