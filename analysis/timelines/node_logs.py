"""Lines of a node's log: JSON objects, one a line, of which only a few kinds are wanted.

The last line may be cut short by a crash; it is left out, as is all that is no JSON. A line that is JSON and
yet no record (of another program, or another format) is an error that names its place.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.errors import AnalysisError


def log_records(path: Path, events: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Records of these events, in order; none if there is no such file.

    Raises AnalysisError for a line that is JSON, but no object with a time.
    """
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if not any(name in line for name in events):
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue  # a crash cut the last line short
            if not isinstance(record, dict):
                raise AnalysisError(f"{path}:{number}: not a log record, but a {type(record).__name__}")
            if record.get("event") not in events:
                continue
            if type(record.get("t_ns")) is not int:
                raise AnalysisError(f"{path}:{number}: a log record of {record['event']} without a time")
            yield record
