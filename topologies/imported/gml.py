"""The Graph Modelling Language (M. Himsolt, "GML: A portable Graph File Format", 1997).

A file is a list of keys with values: numbers, texts in quotes, and lists in brackets. Texts hold other
characters than ASCII as entities of HTML.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from topologies.errors import InputError
from topologies.imported.attributes import AttributeGraph, Attributes

DEPTH_MAX = 20
TOKEN = re.compile(
    r"""(?P<blank>\s+|^\#[^\n]*)|"(?P<text>[^"]*)"|(?P<bracket>[\[\]])|(?P<word>[^\s\[\]"]+)""", re.MULTILINE
)
KEY = re.compile(r"[A-Za-z]\w*", re.ASCII)


class _Entry(NamedTuple):
    key: str  # in lower case
    value: "str | list[_Entry]"


def read_gml(text: str, file: str) -> AttributeGraph:
    """Parse a file. Raises InputError with the line."""
    graph = next((each.value for each in _entries(text, file) if each.key == "graph"), None)
    if not isinstance(graph, list):
        raise InputError(file, None, "", "has no graph: a file in GML has `graph [ node [ … ] edge [ … ] ]`")
    attributes = _attributes(graph)
    return AttributeGraph(
        attributes,
        attributes.get("directed") == "1",
        tuple(
            _attributes(each.value) for each in graph if each.key == "node" and isinstance(each.value, list)
        ),
        tuple(
            _attributes(each.value) for each in graph if each.key == "edge" and isinstance(each.value, list)
        ),
    )


def _attributes(entries: list[_Entry]) -> Attributes:
    return {each.key: each.value for each in entries if isinstance(each.value, str)}


def _entries(text: str, file: str) -> list[_Entry]:
    top: list[_Entry] = []
    open_lists = [top]
    key = ""
    for line, kind, content in _tokens(text, file):
        if kind == "word" and not key:
            if not KEY.fullmatch(content):
                raise InputError(file, line, "", f"not valid GML: {content[:40]!r} is not a key")
            key = content.lower()
        elif (kind, content) == ("bracket", "]") and not key and len(open_lists) > 1:
            open_lists.pop()
        elif (kind, content) == ("bracket", "[") and key:
            inner: list[_Entry] = []
            open_lists[-1].append(_Entry(key, inner))
            open_lists.append(inner)
            key = ""
            if len(open_lists) > DEPTH_MAX:
                raise InputError(file, line, "", "not valid GML: nested too deeply")
        elif kind != "bracket" and key:
            open_lists[-1].append(_Entry(key, html.unescape(content) if kind == "text" else content))
            key = ""
        else:
            raise InputError(file, line, "", f"not valid GML: {content[:40]!r} is not expected here")
    if key or len(open_lists) > 1:
        raise InputError(file, None, "", "not valid GML: the file ends too early")
    return top


def _tokens(text: str, file: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and content of each token."""
    at, line = 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise InputError(file, line, "", "not valid GML: a quotation mark is not closed")
        if match.lastgroup != "blank":
            yield line, match.lastgroup, match[match.lastgroup]
        line += match[0].count("\n")
        at = match.end()
