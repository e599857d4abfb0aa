"""A running campaign, whose record in memory and file are kept the same."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from experiments.campaigns.campaign import CampaignRecord, CampaignRun
from testbed.runner.versions import commit

Record = TypeVar("Record", bound=CampaignRecord[Any])
Run = TypeVar("Run", bound=CampaignRun)


class Campaign(Generic[Record]):
    """The record of a campaign, written to its file with each change."""

    def __init__(self, record: Record, write: Callable[[Record], None]) -> None:
        self.record = record
        self._write = write

    def update(self, record: Record) -> None:
        """Replace and write the record. Raises OSError."""
        self.record = record
        self._write(record)

    def note(self, run: Run) -> Run:
        """Record the state of a run. Raises OSError."""
        self.update(self.record.with_run(run))
        return run

    @property
    def code_changed(self) -> bool:
        """Whether the code has changed since it began."""
        return self.record.commit != commit()
