"""docs/nightly.md names every column, and no other."""

import re
from pathlib import Path

import pytest

from analysis.history.history_schemas import SCHEMAS

PAGE = Path(__file__).parents[3] / "docs" / "nightly.md"
IN_ALL = {"schema", "run", "suite", "entry"}


@pytest.mark.parametrize("table", SCHEMAS)
def test_the_columns_of_every_table_are_documented(table: str) -> None:
    (row,) = re.findall(rf"^\| `{table}` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert IN_ALL | set(re.findall(r"`(\w+)`", row)) == set(SCHEMAS[table].names)
