"""Validation of the fields of nodes' log records that the analysis reads. Logs are untrusted, as all of a
run.

Only records of requested events are checked, and only the fields below.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

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


def problem_of(record: Mapping[str, Any]) -> str | None:
    """Return field and problem of a record that is invalid; None if it is valid."""
    try:
        from_json(_LogRecord, dict(record), "")
    except InputError as error:
        return f"{error.field}: {error.problem}"
    return None
