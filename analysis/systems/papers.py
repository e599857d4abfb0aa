"""The numbers that the papers publish, from `papers.yaml`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import RootModel

from topologies.document import read_document, validated
from topologies.strict import StrictModel

FILE = Path(__file__).with_suffix(".yaml")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


class _Entry(StrictModel):
    """Values of one kind. value: a number, a text, or such values by key."""

    what: str
    where: str
    read: Literal["text", "caption", "table", "plot"]
    value: Any
    unit: str = ""
    why: str | dict[str, str] = ""

    def why_at(self, keys: tuple[str, ...]) -> str:
        """Return the reason, which may differ by the last key."""
        return self.why if isinstance(self.why, str) else self.why.get(keys[-1], "")


class _Papers(RootModel[dict[str, dict[str, _Entry]]]):
    """The content of the file: entries by paper and name."""


@dataclass(frozen=True, slots=True)
class PaperValue:
    """A number of a paper. where: figure or table, and section. why: why Cutset's differs, if known."""

    key: str
    what: str
    where: str
    value: int | float | str
    unit: str
    why: str

    @property
    def text(self) -> str:
        """The value, with its unit after a number, for tables."""
        value = self.value if isinstance(self.value, str) else f"{self.value:,}"
        return f"{value} {self.unit}".strip() if value[-1].isdigit() else value

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers in the value: two of a range, one of a bound."""
        return tuple(map(float, NUMBER.findall(str(self.value).replace(",", ""))))


@dataclass(frozen=True, slots=True)
class PaperComparison:
    """A number of a paper and ours. paper: the value, or words if the paper gives none."""

    what: str
    paper: PaperValue | str
    ours: str
    reason: str = ""

    @property
    def paper_text(self) -> str:
        """The paper's number as text."""
        return self.paper if isinstance(self.paper, str) else self.paper.text

    @property
    def where(self) -> str:
        """The place in the paper; empty if the paper gives no number."""
        return "" if isinstance(self.paper, str) else self.paper.where

    @property
    def why(self) -> str:
        """The reason for a difference, as far as it is known."""
        return self.reason or ("" if isinstance(self.paper, str) else self.paper.why)


def paper_value(paper: str, name: str, *keys: object) -> PaperValue | None:
    """Return a value of a paper, such as ("meghdoot-2004", "zones", "uniform", 100); None if it has none.

    Raises KeyError for an unknown paper or name, which is a mistake in the code.
    """
    assert name in _entries()[paper], f"{paper} has no {name}"
    return _values(paper).get(".".join((f"{paper} {name}", *map(str, keys))))


def paper_number(paper: str, name: str, *keys: object) -> float:
    """Return the first number of a value that must exist."""
    found = paper_value(paper, name, *keys)
    assert found, f"{paper} has no {name} {keys}"
    return found.numbers[0]


def value_of_key(key: str) -> PaperValue | None:
    """Return the value with this key; None for other texts."""
    return _values(paper).get(key) if (paper := key.partition(" ")[0]) in _entries() else None


def values_of(paper: str) -> tuple[PaperValue, ...]:
    """Return all values of a paper, in the order of the file."""
    return tuple(_values(paper).values())


@cache
def _entries() -> dict[str, dict[str, _Entry]]:
    return validated(_Papers, read_document(FILE)).root


@cache
def _values(paper: str) -> dict[str, PaperValue]:
    return {
        key: PaperValue(
            key, ", ".join((entry.what, *keys)), entry.where, value, entry.unit, entry.why_at(keys)
        )
        for name, entry in _entries()[paper].items()
        for keys, value in _leaves(entry.value, ())
        for key in [".".join((f"{paper} {name}", *keys))]
    }


def _leaves(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value below `value` with the keys that lead to it."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, (*keys, str(key)))
    else:
        yield keys, value
