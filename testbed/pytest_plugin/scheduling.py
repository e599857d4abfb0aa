"""A scheduler for pytest-xdist that keeps each group, and the other tests of each file, in one worker."""

import json
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling


class GroupScheduling(LoadScopeScheduling):
    """Assigns whole groups and files to workers, by size or in order of collection.

    `--no-loadscope-reorder` selects the latter.
    """

    def __init__(self, config: Any, log: Any, folder: Path) -> None:
        """folder: has a file of each worker with the groups of its tests."""
        super().__init__(config, log)
        self._folder = folder
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        """Read the groups when all workers have collected, then distribute the tests."""
        if self.collection is None:
            for written in sorted(self._folder.iterdir()):
                self._groups.update(json.loads(written.read_text()))
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        """Return the scope of a test: its group, else its file."""
        group = self._groups.get(nodeid)
        return nodeid.split("::", 1)[0] if group is None else f"group {group}"
