"""A running campaign: keeps its record and its file the same, and other commands away."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from experiments.campaign import CampaignRecord, CampaignRun
from experiments.locks import HeldError, folder_lock
from testbed.errors import MachineError
from testbed.runner.versions import commit

Record = TypeVar("Record", bound=CampaignRecord[Any])
Run = TypeVar("Run", bound=CampaignRun)


class Campaign(Generic[Record]):
    """Holds a campaign's record and writes each new version of it."""

    def __init__(self, record: Record, write: Callable[[Record], None]) -> None:
        self.record = record
        self._write = write

    def update(self, record: Record) -> None:
        """Write the record. Raises OSError."""
        self.record = record
        self._write(record)

    def note(self, run: Run) -> Run:
        """Write down how far a run is. Raises OSError."""
        self.update(self.record.with_run(run))
        return run

    @property
    def code_changed(self) -> bool:
        """Whether it was begun by other code."""
        return self.record.commit != commit()


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Keep other commands from the campaign in a folder. Raises MachineError if one has it."""
    try:
        with folder_lock(folder, wait=False):
            yield
    except HeldError:
        raise MachineError(
            f"{folder}: another command makes or analyses its runs: wait until it is over"
        ) from None
