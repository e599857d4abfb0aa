"""Where the pages of the site stand, and how they link to each other and to the runs' own reports."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from experiments.records.rundir import RunDirectory

_OTHERS = re.compile(r"[^A-Za-z0-9._-]")
_BETWEEN = "~"  # stands in no name: it is not among the plain characters
_LENGTH_MAX, _SHOWN, _DIGITS = 100, 64, 32  # two names, and what is appended, are a file's


@dataclass(frozen=True, slots=True)
class Site:
    """The site's folder: index.html, and folders of pages of experiments, runs and comparisons."""

    folder: Path

    @property
    def index(self) -> Path:
        """The morning page."""
        return self.folder / "index.html"

    @property
    def looks(self) -> Path:
        """The style sheet of all pages."""
        return self.folder / "looks.css"

    @property
    def theme(self) -> Path:
        """The script that keeps light or dark."""
        return self.folder / "theme.js"

    @property
    def charts(self) -> Path:
        """What draws the charts."""
        return self.folder / "charts.js"

    def entry(self, suite: str, entry: str) -> Path:
        """An experiment's page."""
        return self.folder / to_entry(suite, entry)

    def run(self, run: str) -> Path:
        """A run's page."""
        return self.folder / to_run(run)

    def comparison(self, run: str) -> Path:
        """A run held against the last good one before it."""
        return self.folder / to_comparison(run)


def to_entry(suite: str, entry: str) -> str:
    """The address of an experiment's page, from the site's folder."""
    return f"experiments/{_file(suite)}{_BETWEEN}{_file(entry)}.html"


def to_run(run: str) -> str:
    """The address of a run's page, from the site's folder."""
    return f"runs/{_file(run)}.html"


def to_comparison(run: str) -> str:
    """The address of a run's comparison, from the site's folder."""
    return f"compare/{_file(run)}.html"


def report_of(run: Mapping[str, Any], page: Path) -> str | None:
    """The address of a run's report as seen from a page; None if it is not there (any more)."""
    if not run["path"]:
        return None
    report = RunDirectory(Path(run["path"])).report_html
    return quote(os.path.relpath(report, page.parent)) if report.exists() else None


def _file(name: str) -> str:
    """A name that is a file's name and an address everywhere; no two names give the same.

    Of one that is too long the digest tells the rest; `==` stands in no other.
    """
    text = _OTHERS.sub(lambda other: "".join(f"={byte:02x}" for byte in other[0].encode()), name)
    if len(text) <= _LENGTH_MAX:
        return text
    return f"{text[:_SHOWN]}=={sha256(name.encode()).hexdigest()[:_DIGITS]}"
