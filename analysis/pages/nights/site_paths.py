"""Paths of the site's pages, and links between them and to the runs' reports."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from analysis.pages.page_environment import report_link
from experiments.records.rundir import RunDirectory

_OTHERS = re.compile(r"[^A-Za-z0-9._-]")
_BETWEEN = "~"  # part of no name: not a plain character
_LENGTH_MAX, _SHOWN, _DIGITS = 100, 64, 32  # two names and a suffix must fit into a file name


@dataclass(frozen=True, slots=True)
class Site:
    """The site's folder: index.html, and folders of pages of experiments and comparisons."""

    folder: Path

    @property
    def index(self) -> Path:
        """The morning page."""
        return self.folder / "index.html"

    def entry(self, suite: str, entry: str) -> Path:
        """Return the path of an experiment's page."""
        return self.folder / to_entry(suite, entry)

    def comparison(self, run: str) -> Path:
        """Return the path of a run's comparison with the last good one before it."""
        return self.folder / to_comparison(run)


def to_entry(suite: str, entry: str) -> str:
    """Return the address of an experiment's page, relative to the site's folder."""
    return f"experiments/{_file(suite)}{_BETWEEN}{_file(entry)}.html"


def to_comparison(run: str) -> str:
    """Return the address of a run's comparison, relative to the site's folder."""
    return f"compare/{_file(run)}.html"


def report_of(run: Mapping[str, Any], page: Path) -> str | None:
    """Return the address of a run's report relative to a page; None if it does not exist."""
    return report_link(RunDirectory(Path(run["path"])), page) if run["path"] else None


def run_address(run: Mapping[str, Any], site: Site) -> str:
    """Return the address of a run's report, or else of its experiment, relative to the site's folder."""
    return report_of(run, site.index) or to_entry(run["suite"], run["entry"])


def _file(name: str) -> str:
    """Return a unique text for a name that is valid as file name and address everywhere.

    A long name is cut and a digest appended after `==`, which no other text contains.
    """
    text = _OTHERS.sub(lambda other: "".join(f"={byte:02x}" for byte in other[0].encode()), name)
    if len(text) <= _LENGTH_MAX:
        return text
    return f"{text[:_SHOWN]}=={sha256(name.encode()).hexdigest()[:_DIGITS]}"
