"""Systems side by side as text: the page's table and paragraphs."""

import textwrap
from collections.abc import Iterator, Sequence

from analysis.pages.report.formatting import aligned
from analysis.pages.systems.cut_story import story
from analysis.pages.systems.numbers import systems_table
from analysis.pages.systems.sides import ComparedSystem

WIDTH = 110


def lines(systems: Sequence[ComparedSystem]) -> Iterator[str]:
    """Yield the table, the systems left out, then a paragraph for each system."""
    table = systems_table(systems)
    rows = [[column.title for column in table.columns]]
    rows += [[cell.text for cell in row] for row in table.rows]
    yield from aligned(rows)
    for system in systems:
        if system.left_out:
            yield f"{system.name} was left out: {system.left_out}"
    for system in systems:
        if system.runs:
            sentences = story(system.basis[0])
            yield from ("", f"{system.name}: {system.basis[0].record.name}")
            yield from textwrap.wrap(" ".join(sentences) or "No data on the cut.", WIDTH)
