"""Topology files, found by name among those in this module's folder or by path; and inline topologies."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from topologies.document import Document, FieldPath, files_in, find_file, read_document, validated
from topologies.generated.kinds import generated, is_generated
from topologies.model import Topology
from topologies.trace_files import read_delay_trace, read_rate_trace

FOLDER = Path(__file__).parent
WITHIN = "inline"
"""The name of a topology inside another file, unless it gives one."""
TRACE_READERS = {"rate": read_rate_trace, "delay": read_delay_trace}


def load_topology(given: str | Mapping[str, Any]) -> Topology:
    """Load a topology by its name, file, or content; generate it if it gives a kind.

    Raises InputError with file, line and field.
    """
    if isinstance(given, str):
        return topology_in(topology_document(given))
    return topology_in(Document(WITHIN, given, {}, inside=("topology",)))


def topology_in(document: Document) -> Topology:
    """Return the topology of a document; one inside another file needs no name. Raises InputError."""
    if document.inside and isinstance(document.data, dict):
        document = replace(document, data={"name": WITHIN, **document.data})
    if is_generated(document.data):
        return generated(document)
    topology = validated(Topology, document)
    for path, name in _traces(document.data):
        if not _is_file(name):
            raise document.error(path, f"there is no file {name}")
        TRACE_READERS[str(path[-1])](Path(name))
    return topology


def topology_document(name_or_path: str) -> Document:
    """Read a file, not yet validated; paths of traces refer to its folder. Raises InputError."""
    file = find_file("topology", FOLDER, name_or_path)
    document = read_document(file)
    find_traces(document.data, file.parent)
    return document


def find_traces(data: Any, folder: Path) -> None:
    """Make the paths of traces in a topology's content absolute; they are relative to a folder."""
    for path, name in _traces(data):
        holder = data
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = os.path.abspath(folder / name)  # noqa: PTH100  removes `..`


def _traces(data: Any) -> Iterator[tuple[FieldPath, str]]:
    """Yield the field path and the file of each trace in a topology."""
    links = data.get("links") if isinstance(data, dict) else None
    for number, link in enumerate(links if isinstance(links, list) else ()):
        for side in ((), ("forward",), ("backward",)):
            given = link
            for part in (*side, "trace"):
                given = given.get(part) if isinstance(given, dict) else None
            for name in TRACE_READERS if isinstance(given, dict) else ():
                if isinstance(given.get(name), str):
                    yield ("links", number, *side, "trace", name), given[name]


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # an invalid name
        return False


def topology_names() -> list[str]:
    """Return the names of the topologies that come with Cutset."""
    return [file.stem for file in files_in(FOLDER)]
