"""The fields of a plan's workload that readers of a run use: their types and ranges.

The other fields belong to the workload's kind (`experiments.workloads`).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from experiments.records.validated_json import Count, Name, Share, from_json
from node.core.content.content import attributes_of
from topologies.errors import InputError

PUBLISHERS_MAX = (1 << 32) - 1


class _Keys(BaseModel):
    """The keys of events (`experiments.workloads.stream`)."""

    model_config = ConfigDict(strict=True, defer_build=True)

    distribution: Name
    skew: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    count: Count | None = None
    insertions: Share = 0.0


class _WorkloadFields(BaseModel):
    """The fields of a workload that readers of a run use."""

    model_config = ConfigDict(strict=True, defer_build=True)

    publishers: Annotated[int, Field(ge=1, le=PUBLISHERS_MAX)] = 1
    rate_per_s: Annotated[float, Field(ge=0, le=1e15)] | None = None
    keys: _Keys | None = None


def workload_problems(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield field and problem of each invalid field."""
    size = workload.get("event_size_bytes", 0)
    if type(size) is not int or not 0 <= size < 1 << 31:
        yield "workload.event_size_bytes", f"{size!r:.40} is not the size of an event"
    try:
        from_json(_WorkloadFields, dict(workload), "workload")
    except InputError as error:
        yield f"workload.{error.field}", error.problem
    if not _are_attributes(workload.get("attributes", [])):
        yield "workload.attributes", "are not attributes: name, kind, low and high of each"


def _are_attributes(given: Any) -> bool:
    """Return whether these are valid attributes of a workload by content."""

    try:
        found = attributes_of({"attributes": given})
    except (KeyError, TypeError, AttributeError):
        return False
    return all(
        all(isinstance(text, str) for text in (each.name, each.kind, *each.labels))
        and type(each.length) is int
        and all(type(end) in {int, float} and abs(end) <= 1e300 for end in (each.low, each.high))
        for each in found
    )
