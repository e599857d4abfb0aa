"""A running campaign: keeps its record and its file the same."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from experiments.campaigns.campaign import CampaignRecord, CampaignRun
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
