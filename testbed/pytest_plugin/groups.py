"""Groups of tests that stay in one worker of pytest-xdist (`--dist loadgroup`, `pytest.mark.xdist_group`).

pytest-xdist 3.8 stores a test's group in its id, through an attribute that pytest 9.2 no longer reads: its
own scheduler then sees no groups and splits them. Here each worker writes the groups of its collected tests
into a folder of the session, where the scheduler reads them. The ids of tests do not change.
"""

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

FOLDER = "cutset_groups"
"""The key of the folder in the input that pytest-xdist sends to a worker. It enables groups."""


class Groups:
    """The plugin of the session that starts workers: sends them the folder, and schedules by their files."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._kept = ExitStack()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the folder to a worker that is about to start, unless it is on another machine."""
        if node.gateway.spec.popen:
            node.workerinput[FOLDER] = str(self._created_folder())

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Return the scheduler of the session."""
        from testbed.pytest_plugin.scheduling import GroupScheduling

        return GroupScheduling(config, log, self._created_folder())

    def pytest_unconfigure(self) -> None:
        """Remove the folder at the end of the session."""
        self._kept.close()

    def _created_folder(self) -> Path:
        if self._folder is None:
            from experiments.files.scratch import scratch

            self._folder = self._kept.enter_context(scratch("cutset-grouped-", Path(tempfile.gettempdir())))
        return self._folder


class GroupWriter:
    """The plugin of a worker, which writes the groups of the tests that it collected."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._file = folder / worker

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist reports that this worker has collected
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write the groups when all tests and their markers are known."""
        found = ((item.nodeid, group_of(item)) for item in session.items)
        self._file.write_text(json.dumps({nodeid: group for nodeid, group in found if group is not None}))


def group_of(item: pytest.Item) -> str | None:
    """Return a test's group; as in pytest-xdist, several markers combine to one group."""
    markers = item.iter_markers("xdist_group")
    names = {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in markers}
    return "_".join(sorted(names)) or None


def kept_together(config: pytest.Config) -> bool:
    """Return whether this is a worker of a session that keeps groups together."""
    return FOLDER in getattr(config, "workerinput", {})


def plugin_for(config: pytest.Config) -> Groups | GroupWriter | None:
    """Return the plugin of this session or worker if tests are distributed by groups, else None."""
    if kept_together(config):
        worker = config.workerinput  # type: ignore[attr-defined]  # pytest-xdist sets it
        return GroupWriter(Path(worker[FOLDER]), worker["workerid"])
    return Groups() if config.getoption("dist", "no") == "loadgroup" else None
