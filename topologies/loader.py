"""Finds and reads topology files: by name among those beside this module, or by path."""

from pathlib import Path

from topologies.document import Document, files_in, find_file, read_document, validated
from topologies.generated.kinds import generated, is_generated
from topologies.model import Topology

FOLDER = Path(__file__).parent


def load_topology(name_or_path: str) -> Topology:
    """The topology of this name, or in this file, generated if the file gives a kind.

    Raises InputError with file, line and field.
    """
    document = topology_document(name_or_path)
    return generated(document) if is_generated(document.data) else validated(Topology, document)


def topology_document(name_or_path: str) -> Document:
    """The file's content, not yet validated. Raises InputError."""
    return read_document(find_file("topology", FOLDER, name_or_path))


def topology_names() -> list[str]:
    """The names of the topologies that come with Cutset."""
    return [file.stem for file in files_in(FOLDER)]
