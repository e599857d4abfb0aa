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
"""What stands in place of a value."""
ITEMS_MAX = 1
"""Of a list, whose items are looked into."""


def name_of(wrong: Any) -> str:
    """What pytest calls it."""
    return "gone" if wrong is GONE else repr(wrong)[:12]


def paths(value: Any, path: JsonPath = ()) -> Iterator[JsonPath]:
    """Of every field."""
    if path:
        yield path
    items: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = list(enumerate(value))[:ITEMS_MAX]
    for key, child in items:
        yield from paths(child, (*path, key))


def changed(content: Json, path: JsonPath, wrong: Any) -> Json:
    """The same with something else at a path. It shares all that is not on the way there."""
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
    """Where a reader neither takes the changed content nor refuses it in one line, and what it says instead.

    values: those of WRONG that stand in place of each field in turn. skip: fields of the outermost object
    that are left alone. every: only every so manyth field is changed, others with each value, where trying
    all of them with all values takes many minutes.
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
    """What a reader says that it must not say."""
    try:
        read(content)
    except allowed as error:
        return str(error) if "\n" in str(error) else ""
    except Exception as error:  # noqa: BLE001 - that is what must not come
        return f"{type(error).__name__}: {error}"[:200]
    return ""
