"""Frames that a busy machine let leave late, kept apart from links that are not as configured."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from analysis.timelines.links.fidelity import VIOLATED

LATE_AT_P99 = re.compile(r"p99 [\d.,]+ ms late")


def is_violated(row: dict[str, Any]) -> bool:
    """Return whether the link was not as configured, by more than the lateness of its last percent."""
    return row["verdict"] == VIOLATED and not LATE_AT_P99.fullmatch(row["reason"])


def skip_if_late(rows: Iterable[dict[str, Any]], verdict: str) -> None:
    """Skip the test if the run is invalid and more than the last percent of a link's frames left late."""
    late = [row["reason"] for row in rows if is_violated(row) and "late" in row["reason"]]
    if verdict == "invalid" and late:
        pytest.skip(f"the processors were so busy that frames left late: {late}")
