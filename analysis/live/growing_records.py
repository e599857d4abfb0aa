"""Records of deliveries that are still being written, each read from where it was left."""

from pathlib import Path

import numpy as np

from analysis.timelines.delivery.delivery_records import HostRecords, read_rows, sessions_of


class GrowingRecords:
    """One host's record of deliveries."""

    def __init__(self, host: str, path: Path) -> None:
        self._host, self._path = host, path
        self._records, self._session = 0, -1

    def read(self) -> HostRecords:
        """What was written since the last time. Raises AnalysisError for a file that is no such record."""
        rows = read_rows(self._path, self._records)
        session = sessions_of(rows, self._session)
        position = self._records + np.arange(len(rows))
        self._records += len(rows)
        self._session = int(session[-1]) if len(rows) else self._session
        return HostRecords(self._host, rows, session, position)
