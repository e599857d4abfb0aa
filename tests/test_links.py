"""Links between pages: each file and each heading that a page names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("*.md", "docs/**/*.md", "systems/*/*.md", "node/**/*.md", "topologies/**/*.md", "findings/*.md")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)")


def text_of(page: Path) -> str:
    return CODE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    pages = [page for folder in FOLDERS for page in ROOT.glob(folder) if "node_modules" not in page.parts]
    assert len(pages) > 40
    dead = []
    for page in pages:
        for file, anchor in LINK.findall(text_of(page)):
            target = page.parent / file if file else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                dead.append(f"{page.relative_to(ROOT)}: {file}#{anchor}")
    assert not dead
