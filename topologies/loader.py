"""Loads topologies: by the name of a file in this folder, by path, inline, or by name from TopoHub."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from topologies.document import (
    Document,
    FieldPath,
    find_file,
    parse_document,
    read_document,
    validated,
)
from topologies.generated.kinds import generated, is_generated
from topologies.imported.imported_text import text_of_source
from topologies.imported.topohub import PACKAGE as TOPOHUB
from topologies.imported.topohub import PREFIX as TOPOHUB_PREFIX
from topologies.model import Topology
from topologies.trace_files import QUANTILES_ENDING, read_delay_trace, read_rate_trace

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
    for path, name in _distributions(document.data):
        if not _is_file(name):
            raise document.error(path, f"there is no file {name}")
    if is_generated(document.data):
        return generated(document)
    topology = validated(Topology, document)
    for path, name in _traces(document.data):
        if not _is_file(name):
            raise document.error(path, f"there is no file {name}")
        TRACE_READERS[str(path[-1])](Path(name))
    return topology


def topology_document(name_or_path: str) -> Document:
    """Read a topology, not yet validated; paths of traces refer to its folder. Raises InputError."""
    if name_or_path.startswith(TOPOHUB_PREFIX):
        return parse_document(name_or_path, text_of_source(name_or_path))
    file = find_file("topology", FOLDER, name_or_path)
    document = read_document(file)
    resolve_trace_paths(document.data, file.parent)
    return document


def is_topology_file(given: str) -> bool:
    """Return whether a topology is given by the path of a file."""
    is_path = "/" in given or given.endswith((".yaml", ".yml"))
    return is_path and not given.startswith(TOPOHUB_PREFIX)


def lacks_package(given: Any) -> bool:
    """Return whether a topology is from TopoHub, and TopoHub's package is not installed."""
    return isinstance(given, str) and given.startswith(TOPOHUB_PREFIX) and not find_spec(TOPOHUB)


def resolve_trace_paths(data: Any, folder: Path) -> None:
    """Make the paths of files in a topology's content absolute; they are relative to a folder."""
    for path, name in (*_traces(data), *_distributions(data)):
        holder = data
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = os.path.abspath(folder / name)  # noqa: PTH100  removes `..`


def _traces(data: Any) -> Iterator[tuple[FieldPath, str]]:
    """Yield the field path and the file of each trace in a topology."""
    for given, path in _links(data):
        trace = given.get("trace")
        for name in TRACE_READERS:
            if isinstance(trace, dict) and isinstance(trace.get(name), str):
                yield (*path, "trace", name), trace[name]


def _distributions(data: Any) -> Iterator[tuple[FieldPath, str]]:
    """Yield the field path and the file of each measured distribution of jitter in a topology."""
    for given, path in _links(data):
        name = given.get("jitter_distribution")
        if isinstance(name, str) and name.endswith(QUANTILES_ENDING):
            yield (*path, "jitter_distribution"), name


def _links(data: Any) -> Iterator[tuple[Mapping[str, Any], FieldPath]]:
    """Yield links, their directions, and LANs in a topology, each with its field path."""
    if not isinstance(data, dict):
        return
    for of_generated in ("link", "lan"):
        if isinstance(data.get(of_generated), dict):
            yield data[of_generated], (of_generated,)
    links, regions = data.get("links"), data.get("regions")
    for number, link in enumerate(links if isinstance(links, list) else ()):
        for side in ((), ("forward",), ("backward",)):
            given: Any = link.get(side[0]) if side and isinstance(link, dict) else link
            if isinstance(given, dict):
                yield given, ("links", number, *side)
    for name, region in regions.items() if isinstance(regions, dict) else ():
        lan = region.get("lan") if isinstance(region, dict) else None
        if isinstance(lan, dict):
            yield lan, ("regions", name, "lan")


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # an invalid name
        return False
