"""Delivery records that are still being written, read incrementally."""

from pathlib import Path

import numpy as np

from analysis.timelines.delivery.delivery_records import HostRecords, read_rows, sessions_of


class GrowingRecords:
    """The delivery records of one host."""

    def __init__(self, host: str, path: Path) -> None:
        self._host, self._path = host, path
        self._records, self._session = 0, -1

    def read(self) -> HostRecords:
        """Return the records written since the last call. Raises AnalysisError for a file of another kind."""
        rows = read_rows(self._path, self._records)
        session = sessions_of(rows, self._session)
        position = self._records + np.arange(len(rows))
        self._records += len(rows)
        self._session = int(session[-1]) if len(rows) else self._session
        return HostRecords(self._host, rows, session, position)
