"""The first of many texts, and the number of the others."""

from collections.abc import Iterable, Sequence


def first_texts(texts: Sequence[str], most: int, kind: str = "") -> list[str]:
    """Return the first texts, at most `most`, and the number of the others. kind: follows the number."""
    left = len(texts) - most
    return [*texts[:most], f"and {left} more{kind}"] if left > 0 else list(texts)


def listed(names: Iterable[str], most: int) -> str:
    """Return the first names, at most `most`, and the number of the others as one text."""
    every = list(names)
    left = len(every) - most
    return ", ".join(every[:most]) + (f" and {left} more" if left > 0 else "")
