"""Records in nodes' logs. Logs are untrusted, as all of a run, so the fields that are read are checked.

A log has a JSON object per line. Lines that are not JSON, such as a last line cut short by a crash, are
skipped. A line that is JSON but not a log record (of another program, or in another format) is an error that
names its place. Only records of requested events are checked, and only the fields below.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from analysis.errors import AnalysisError
from experiments.records.validated_json import Count, TimeNs, from_json
from topologies.errors import InputError

Stream = Annotated[int, Field(ge=0, lt=1 << 31)]
Peer = Annotated[int, Field(ge=0, lt=1 << 32)] | str | None
"""An address as a number, or a process's name."""
Edge = Annotated[float, Field(ge=0, le=1)]


def _sound_zone(zone: list[Any]) -> list[Any]:
    if len(zone) < 3 or len(zone) % 2 == 0:
        raise ValueError("is not a zone: it needs a version, and two edges for each dimension")
    return zone


Zone = Annotated[list[Count | Edge], AfterValidator(_sound_zone)]


class _LogRecord(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    t_ns: TimeNs
    stream: Stream | None = None
    peer: Peer = None
    to: Peer = None
    relay: Peer = None
    further: list[Peer] | None = None
    number: Count | None = None
    joining: str | None = None
    events: Count | None = None
    live: Count | None = None
    zones: list[Zone] | None = None


def _problem_of(record: Mapping[str, Any]) -> str | None:
    """Return field and problem of a record that is invalid; None if it is valid."""
    try:
        from_json(_LogRecord, dict(record), "")
    except InputError as error:
        return f"{error.field}: {error.problem}"
    return None


def log_records(path: Path, events: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield records of these events, in order; none if the file does not exist.

    Raises AnalysisError for a line that is JSON but not an object with a time, or has other fields than a log
    record.
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
            if (problem := _problem_of(record)) is not None:
                raise AnalysisError(f"{path}:{number}: {problem}")
            yield record
