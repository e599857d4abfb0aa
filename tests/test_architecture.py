"""ARCHITECTURE.md and the systems' own pages name files and folders that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("topologies", "systems", "experiments", "node", "analysis", "testbed", "tests", "findings")
PAGES = [ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("node/protocols/*/README.md"))]


def named_files(page: Path) -> list[str]:
    """Return the paths in backticks in the tables of a page: `relay/loop.py` or `testbed/links/`."""
    rows = (line for line in page.read_text().splitlines() if line.startswith("|"))
    named = (name for row in rows for name in re.findall(r"`([^`]+)`", row))
    return [name for name in named if re.fullmatch(r"[\w*/.<>-]+(\.py|/)", name) and "<" not in name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = named_files(page)
    assert len(named) > 10
    there = [path for folder in FOLDERS for path in (ROOT / folder, *(ROOT / folder).rglob("*"))]
    assert [name for name in named if not any(path.match(name) for path in there)] == []
