"""The kinds of generated topologies, by the word that a file gives as `kind`."""

from typing import Any, get_args

from pydantic_core import PydanticCustomError

from topologies.document import Document, validated
from topologies.generated.cliques import Cliques
from topologies.generated.grid import Grid
from topologies.generated.line import Line
from topologies.generated.mesh import Mesh
from topologies.generated.model import Generated
from topologies.generated.regular import Regular
from topologies.generated.ring import Ring
from topologies.generated.star import Star
from topologies.generated.tree import Tree
from topologies.model import Topology
from topologies.strict import suggestion

MODELS: tuple[type[Generated], ...] = (Ring, Line, Star, Mesh, Grid, Tree, Cliques, Regular)


def kind_of(model: type[Generated]) -> str:
    """The word for it: the one value that its field `kind` may have."""
    (word,) = get_args(model.model_fields["kind"].annotation)
    return str(word)


KINDS = {kind_of(model): model for model in MODELS}


def is_generated(data: Any) -> bool:
    """Whether a file's content gives a kind rather than links."""
    return isinstance(data, dict) and "kind" in data


def generated(document: Document) -> Topology:
    """The topology that a document with a kind stands for. Raises InputError."""
    kind = document.data["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise document.error(("kind",), f"there is no kind {kind!r:.40}{suggestion(kind, KINDS)}")
    model = validated(KINDS[kind], document)
    try:
        return model.generate()
    except PydanticCustomError as error:
        found = error.context or {}
        raise document.error(found["path"], found["message"]) from None
