"""A JSON object with each of its fields changed in many ways, as a damaged or hostile file has it."""

import copy
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from topologies.errors import InputError

Json = dict[str, Any]
JsonPath = tuple[str | int, ...]
GONE = object()
WRONG: tuple[Any, ...] = (
    *(GONE, None, True, [], {}, [[]], [None], {"x": 1}, ["x", "x"]),
    *(-1, 0, 1, 0.5, 3_000_000_000, 1 << 40, (1 << 62) - 1, 1 << 70, 10**400, 1e300, -1e300),
    *("", "x", "\ud800", "1", "../x", "/etc/passwd", "\x1b[2J", "\u202e", '"><script>', "x" * 10_000),
)
"""Values that replace a field's value."""
ITEMS_MAX = 1
"""Number of items of a list that are examined."""


def name_of(wrong: Any) -> str:
    """Return the name of a case for pytest."""
    return "gone" if wrong is GONE else repr(wrong)[:12]


def paths(value: Any, path: JsonPath = ()) -> Iterator[JsonPath]:
    """Yield the path of every field."""
    if path:
        yield path
    items: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = list(enumerate(value))[:ITEMS_MAX]
    for key, child in items:
        yield from paths(child, (*path, key))


def changed(content: Json, path: JsonPath, wrong: Any) -> Json:
    """Return the content with another value at a path; unchanged parts are shared."""
    made = copy.copy(content)
    *way, last = path
    place: Any = made
    for step in way:
        place[step] = copy.copy(place[step])
        place = place[step]
    if wrong is GONE:
        del place[last]
    else:
        place[last] = wrong
    return made


def broken(
    content: Json,
    values: Iterable[Any],
    read: Callable[[Json], object],
    allowed: tuple[type[Exception], ...] = (InputError,),
    skip: Collection[str] = (),
    every: int = 1,
) -> list[tuple[JsonPath, str]]:
    """Return the paths at which a reader neither accepts a changed content nor refuses it in one line.

    The result includes the reader's message. values: those of WRONG that replace each field in turn. skip:
    fields of the outermost object that stay unchanged. every: change only each n-th field per value, where
    all combinations would take many minutes.
    """
    read(content)
    before = copy.deepcopy(content)
    fields = [path for path in paths(content) if path[0] not in skip]
    found = []
    for wrong in values:
        first = next(number for number, each in enumerate(WRONG) if each is wrong) % every
        for path in fields[first::every]:
            if said := _complaint(read, changed(content, path, wrong), allowed):
                found.append(((*path, name_of(wrong)), said))
    assert content == before, "a reader changes what it reads"
    return found


def _complaint(read: Callable[[Json], object], content: Json, allowed: tuple[type[Exception], ...]) -> str:
    """Return a reader's message that it must not give, or ""."""
    try:
        read(content)
    except allowed as error:
        return str(error) if "\n" in str(error) else ""
    except Exception as error:  # noqa: BLE001 - that is what must not come
        return f"{type(error).__name__}: {error}"[:200]
    return ""
