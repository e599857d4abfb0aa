"""A scheduler for pytest-xdist that sees groups: each stays in one worker, as do other tests of a file."""

import json
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling


class GroupScheduling(LoadScopeScheduling):
    """Hands out groups and files, each as a whole, in the order in which they are collected or by their sizes
    (`--no-loadscope-reorder`).
    """

    def __init__(self, config: Any, log: Any, folder: Path) -> None:
        """folder: where each worker has written the groups of its tests."""
        super().__init__(config, log)
        self._folder = folder
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        """All workers have collected, or a new one has."""
        if self.collection is None:
            for written in sorted(self._folder.iterdir()):
                self._groups.update(json.loads(written.read_text()))
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        """What is handed out with this test."""
        group = self._groups.get(nodeid)
        return nodeid.split("::", 1)[0] if group is None else f"group {group}"
