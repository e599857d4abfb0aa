"""Groups of tests that stay in one worker of pytest-xdist (`--dist loadgroup`, `pytest.mark.xdist_group`).

pytest-xdist 3.8 carries a test's group in its id, through an attribute that pytest 9.2 no longer reads:
its own scheduler then sees no groups and splits them. Here each worker writes the groups of what it collected
into a folder of the session, and the scheduler reads them there. The ids of tests stay as they are.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

FOLDER = "cutset_groups"
"""Names the folder in the input that pytest-xdist sends to a worker. With it, groups are kept together."""


class Groups:
    """In the session that starts workers: gives them the folder, and schedules by what they write there."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker is about to start. One on another machine cannot write here: nothing is promised to it."""
        if node.gateway.spec.popen:
            node.workerinput[FOLDER] = str(self._made())

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """The scheduler of the session."""
        from testbed.pytest_plugin.scheduling import GroupScheduling

        return GroupScheduling(config, log, self._made())

    def pytest_unconfigure(self) -> None:
        """The session is over."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)  # a temporary folder: the next reboot clears it

    def _made(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="cutset-groups-"))
        return self._folder


class GroupWriter:
    """In a worker: writes down the groups of the tests it collected."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._file = folder / worker

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist says that this worker has collected
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """All tests are known, with all of their markers."""
        found = ((item.nodeid, group_of(item)) for item in session.items)
        self._file.write_text(json.dumps({nodeid: group for nodeid, group in found if group is not None}))


def group_of(item: pytest.Item) -> str | None:
    """The group that a test is of: several markers name one together, as pytest-xdist has it."""
    markers = item.iter_markers("xdist_group")
    names = {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in markers}
    return "_".join(sorted(names)) or None


def kept_together(config: pytest.Config) -> bool:
    """Whether this is a worker of a session that keeps groups together."""
    return FOLDER in getattr(config, "workerinput", {})


def plugin_for(config: pytest.Config) -> Groups | GroupWriter | None:
    """What follows this session, if it is shared among workers by groups."""
    if kept_together(config):
        worker = config.workerinput  # type: ignore[attr-defined]  # pytest-xdist sets it
        return GroupWriter(Path(worker[FOLDER]), worker["workerid"])
    return Groups() if config.getoption("dist", "no") == "loadgroup" else None
