"""Finds and reads topology files: by name among those beside this module, or by path."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from topologies.document import Document, FieldPath, files_in, find_file, read_document, validated
from topologies.generated.kinds import generated, is_generated
from topologies.model import Topology
from topologies.trace_files import read_delay_trace, read_rate_trace

FOLDER = Path(__file__).parent
TRACE_READERS = {"rate": read_rate_trace, "delay": read_delay_trace}


def load_topology(name_or_path: str) -> Topology:
    """The topology of this name, or in this file, generated if the file gives a kind.

    Raises InputError with file, line and field.
    """
    document = topology_document(name_or_path)
    if is_generated(document.data):
        return generated(document)
    topology = validated(Topology, document)
    for path, name in _traces(document.data):
        if not Path(name).is_file():
            raise document.error(path, f"there is no file {name}")
        TRACE_READERS[str(path[-1])](Path(name))
    return topology


def topology_document(name_or_path: str) -> Document:
    """The file's content, not yet validated; paths of traces start from its folder. Raises InputError."""
    file = find_file("topology", FOLDER, name_or_path)
    document = read_document(file)
    for path, name in _traces(document.data):
        document.written(path[:-1])[path[-1]] = str((file.parent / name).absolute())
    return document


def _traces(data: Any) -> Iterator[tuple[FieldPath, str]]:
    """Each path of a trace's file that stands in a topology, and where."""
    links = data.get("links") if isinstance(data, dict) else None
    for number, link in enumerate(links if isinstance(links, list) else ()):
        for side in ((), ("forward",), ("backward",)):
            given = link
            for part in (*side, "trace"):
                given = given.get(part) if isinstance(given, dict) else None
            for name in TRACE_READERS if isinstance(given, dict) else ():
                if isinstance(given.get(name), str):
                    yield ("links", number, *side, "trace", name), given[name]


def topology_names() -> list[str]:
    """The names of the topologies that come with Cutset."""
    return [file.stem for file in files_in(FOLDER)]
