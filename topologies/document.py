"""A YAML file as plain data with the line of each value.

Reading is bounded (size, depth, number of values: aliases can multiply) and refuses duplicate keys. A
validation error of any model becomes an InputError with file, line and field; pydantic's messages are
reworded for users.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from topologies.bounded_files import decoded, read_bounded
from topologies.errors import InputError
from topologies.quantities import BY_SUFFIX, QuantityError, number_hint
from topologies.yaml_nodes import compose

FILE_BYTES_MAX = 256 * 1024
DEPTH_MAX = 20
VALUES_MAX = 50_000
PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{tag}" for tag in ("null", "bool", "int", "float"))
TEXT_TAGS = frozenset(f"tag:yaml.org,2002:{tag}" for tag in ("str", "timestamp"))
BOOL_TAG = "tag:yaml.org,2002:bool"
BOOLEANS = frozenset({"true", "false"})
"""As in YAML 1.2. In YAML 1.1 `no` and `on` are booleans, too, but here they are names, as of Norway."""

FieldPath = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Document:
    """A file's content.

    file: the path for messages, relative to the working directory if it is below that.
    data: mappings, lists and scalars.
    lines: 1-based line of every value, by its path; for mappings' values, the line of their key.
    overridden: the origin's name, by path, of values from the command line.
    inside: the path of the document in its file, if it is a part of one.
    """

    file: str
    data: Any
    lines: Mapping[FieldPath, int]
    overridden: Mapping[FieldPath, str] = field(default_factory=dict)
    inside: FieldPath = ()

    def below(self, path: FieldPath) -> "Document":
        """Return the value at `path` as a document; its errors have this document's lines and paths."""
        depth = len(path)
        return Document(
            self.file,
            self.written(path),
            {at[depth:]: line for at, line in self.lines.items() if at[:depth] == path},
            {at[depth:]: origin for at, origin in self.overridden.items() if at[:depth] == path[: len(at)]},
            (*self.inside, *path),
        )

    def line_of(self, path: FieldPath) -> int | None:
        """Return the line of a value, or of the nearest enclosing one."""
        return next((self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), None)

    def written(self, path: FieldPath) -> Any:
        """Return the value at `path`, or None."""
        value = self.data
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def error(self, path: FieldPath, problem: str) -> InputError:
        """Return the error to raise about the value at `path`."""
        whole = dotted((*self.inside, *path))
        if origin := self._origin(path):
            return InputError(origin, None, whole, problem)
        return InputError(self.file, self.line_of(path), whole, problem)

    def _origin(self, path: FieldPath) -> str | None:
        """Return the latest override of the value at `path`, or of one around or within it."""
        if not path and not self.inside:
            return None
        touching = [origin for at, origin in self.overridden.items() if at[: len(path)] == path[: len(at)]]
        return touching[-1] if touching else None


def dotted(path: FieldPath) -> str:
    """Return a path in dotted form, such as `links.0.delay`."""
    return ".".join(map(str, path))


def shown_path(path: Path) -> str:
    """Return the path relative to the working directory if it is below that, else absolute."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute)


def find_file(kind: str, folder: Path, name_or_path: str, *, beside: Path | None = None) -> Path:
    """Return the file of a name in `folder` or of a path (which has a slash or ends in .yaml or .yml).

    kind: "topology" or "experiment", for the message. beside: the folder to which relative paths refer.
    Raises InputError with the known names.
    """
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        return (beside or Path()) / name_or_path
    path = folder / f"{name_or_path}.yaml"
    if not path.is_file():
        known = ", ".join(file.stem for file in files_in(folder))
        raise InputError(
            name_or_path, None, "", f"no {kind} of this name: known are {known}; a path works too"
        )
    return path


def files_in(folder: Path) -> list[Path]:
    """Return the YAML files of a folder, sorted by name."""
    return sorted(folder.glob("*.yaml"), key=lambda file: file.stem)


def read_document(path: Path) -> Document:
    """Read a YAML file. Raises InputError."""
    file = shown_path(path)
    return parse_document(file, decoded(read_bounded(path, file, FILE_BYTES_MAX), file))


def parse_document(file: str, text: str) -> Document:
    """Parse YAML. Raises InputError with the line."""
    try:
        root = compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise InputError(file, mark.line + 1 if mark else None, "", f"not valid YAML: {problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(file, None, "", f"not valid YAML: {problem}") from None
    if root is None:
        raise InputError(file, None, "", "the file is empty")
    reading = _NodeReader(file)
    return Document(file, reading.value(root, ()), reading.lines)


def validated(model: type[Model], document: Document) -> Model:
    """Return the document's data as a model. Raises InputError for the first problem in the file."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise document.error(*first_problem(document, error)) from None


def first_problem(document: Document, error: ValidationError) -> tuple[FieldPath, str]:
    """Return the path and message of the first problem in the file; consequences of others are skipped."""
    found = error.errors(include_url=False)
    problems = [_located(details, document) for details in found if not _follows(details, found)]
    return min(problems, key=lambda found: document.line_of(found[0]) or 0)


def _located(details: ErrorDetails, document: Document) -> tuple[FieldPath, str]:
    """Return the path and message of a pydantic error; tags of unions, in <>, are not part of the path."""
    inner = details.get("ctx", {}).get("path", ())
    path = tuple(part for part in details["loc"] if not str(part).startswith(("<", "[key]"))) + tuple(inner)
    return path, validation_message(details, document.written(path))


def _follows(details: ErrorDetails, found: list[ErrorDetails]) -> bool:
    """Return whether too few items are reported only because some of them are invalid."""
    loc = details["loc"]
    return details["type"] == "too_short" and any(
        len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc for other in found
    )


class _NodeReader:
    """A conversion of nodes to data, within bounds, which records lines."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[FieldPath, int] = {}
        self.constructor = yaml.SafeLoader("")

    def value(self, node: yaml.Node, path: FieldPath) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if len(path) > DEPTH_MAX or len(self.lines) > VALUES_MAX:
            raise self._error(
                node, path[:3], "nested too deeply" if len(path) > DEPTH_MAX else "too many values"
            )
        if isinstance(node, yaml.MappingNode):
            return {key: self.value(child, (*path, key)) for key, child in self._entries(node, path)}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _entries(self, node: yaml.MappingNode, path: FieldPath) -> Iterator[tuple[str, yaml.Node]]:
        first_lines: dict[str, int] = {}
        for key_node, child in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(key_node, path, "a field's name should be plain text")
            key, line = key_node.value, key_node.start_mark.line + 1
            if key in first_lines:
                raise self._error(key_node, (*path, key), f"given twice, first in line {first_lines[key]}")
            first_lines[key] = self.lines[(*path, key)] = line
            yield key, child

    def _scalar(self, node: yaml.Node, path: FieldPath) -> Any:
        if node.tag in TEXT_TAGS or (node.tag == BOOL_TAG and node.value.lower() not in BOOLEANS):
            return node.value
        if node.tag not in PLAIN_TAGS:
            raise self._error(node, path, f"the tag {node.tag} has no meaning here")
        try:
            return self.constructor.construct_object(node)
        except (ValueError, yaml.YAMLError):
            raise self._error(node, path, f"{node.value!r:.40} cannot be read as a value") from None

    def _error(self, node: yaml.Node, path: FieldPath, problem: str) -> InputError:
        return InputError(self.file, node.start_mark.line + 1, dotted(path), problem)


_SUBJECT = re.compile("(Input|String|Tuple|List|Dictionary) (?=should )")
_KINDS = {"a valid tuple": "a list", "a valid list": "a list", "a valid dictionary": "a mapping of fields"}
_NUMBERS = ("float_type", "int_type")
_LIMITS = ("ge", "gt", "le", "lt")


def validation_message(details: ErrorDetails, written: object) -> str:
    """Return a message such as `should be greater than or equal to 10s, not '5s'`.

    written: the value as in the file.
    """
    if details["type"] == "missing":
        return "is missing"
    message = details["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if message.startswith("Input should"):
        plain = f"{message}, not {details['input']!r:.40}"
        is_number, is_whole = details["type"] in _NUMBERS, details["type"] == "int_type"
        hint = number_hint(details["input"], is_whole=is_whole) if is_number else ""
        message = _with_unit(message, details, written) or plain + hint
    message = _SUBJECT.sub("", message, count=1).replace(" after validation", "")
    for kind, word in _KINDS.items():
        message = message.replace(kind, word)
    return message


def _with_unit(message: str, details: ErrorDetails, written: object) -> str | None:
    """Return the message for a quantity beyond a limit, both with units; None for other problems."""
    limits = [value for key, value in details.get("ctx", {}).items() if key in _LIMITS]
    for quantity in BY_SUFFIX if limits else ():
        with contextlib.suppress(QuantityError):
            quantity.parse(written)
            return f"{message.replace(str(limits[0]), quantity.format(limits[0]))}, not {written!r:.40}"
    return None
