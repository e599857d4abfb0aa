"""The kinds of workloads: selects the model of a file's workload."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from experiments.workloads.content import ContentWorkload
from experiments.workloads.stream import StreamWorkload
from experiments.workloads.topics import TopicsWorkload
from experiments.workloads.workload import Workload
from topologies.strict import problem, suggestion

KINDS = {"stream": StreamWorkload, "topics": TopicsWorkload, "content": ContentWorkload}
DEFAULT = "stream"


def _kind_of(given: Any) -> str:
    return str(given.get("kind", DEFAULT) if isinstance(given, dict) else given.kind)


def _known(given: Any) -> Any:
    if not isinstance(given, (dict, Workload)):
        raise problem(f"should be a mapping of fields, not {given!r:.40}")
    if (kind := _kind_of(given)) not in KINDS:
        raise problem(f"there is no such kind of workload{suggestion(kind, KINDS)}", "kind")
    return given


AnyWorkload = Annotated[
    Annotated[StreamWorkload, Tag("<stream>")]
    | Annotated[TopicsWorkload, Tag("<topics>")]
    | Annotated[ContentWorkload, Tag("<content>")],
    Discriminator(lambda given: f"<{_kind_of(given)}>"),
    BeforeValidator(_known),
]
"""A workload of the kind that `kind` names."""
