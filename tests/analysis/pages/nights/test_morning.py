"""The content and colours of the morning page's first screen: tonight's suites, their runs that may not fail,
and skipped runs.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.history import History
from analysis.pages.nights import write_site
from tests.analysis.history.records import make_record

JUNE_30, JUNE_29, FEBRUARY = "2026-06-30", "2026-06-29", "2026-02-17"
FAILED: dict[str, Any] = {"verdict": "invalid", "valid": False, "reasons": ("the machine was busy",)}
Add = Callable[..., None]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history")


@pytest.fixture
def add(history: History) -> Add:
    """Return a function that adds a run of a suite's entry in a night."""

    def added(suite: str, night: str, entry: str = "cut", **changes: Any) -> None:
        name = f"{night.replace('-', '')}T020000Z-{suite}-{entry}"
        assert history.append(make_record(name, night, suite=suite, entry=entry, **changes))

    return added


def page_of(history: History, left_out: dict[str, list[str]] | None = None) -> str:
    return write_site(history, history.folder / "site", left_out=left_out).read_text()


def held(page: str) -> tuple[str, str]:
    """Return the status and the text of the card "did everything hold"."""
    cards = re.findall(r'<article class="card ?(\w*)">(.*?)</article>', page, re.DOTALL)
    status, card = next((status, card) for status, card in cards if "Did everything hold?" in card)
    return status, " ".join(re.sub(r"<[^>]+>", " ", card).split())


def part(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.DOTALL)
    return found[0] if found else ""


def test_a_suite_that_stopped_long_ago_does_not_affect_the_verdict(history: History, add: Add) -> None:
    add("old", FEBRUARY, **FAILED)
    add("quick", JUNE_30)
    page = page_of(history)
    assert "<h1>quick: the night of 30\u00a0Jun" in page
    assert held(page) == ("good", "Did everything hold? ✓ Yes 1 of 1 run passed.")
    assert not part(page, "failed")


def test_a_suite_of_the_night_before_counts_as_tonights(history: History, add: Add) -> None:
    add("late", JUNE_29, **FAILED)
    add("quick", JUNE_30)
    page = page_of(history)
    assert "<h1>late, quick: " in page
    assert held(page)[0] == "bad"


def test_an_experiment_removed_from_its_suite_is_not_tonights(history: History, add: Add) -> None:
    add("quick", FEBRUARY, "dropped", **FAILED)
    add("quick", JUNE_30)
    page = page_of(history)
    assert "dropped" not in part(page, "tonight")


def test_allowed_failures_are_reported_without_a_bad_status(history: History, add: Add) -> None:
    add("quick", JUNE_29, "latency", allow_failure=True, **FAILED)
    add("quick", JUNE_30, "latency", allow_failure=True, **FAILED)
    add("quick", JUNE_30)
    page = page_of(history)
    said = "Did everything hold? ✓ Yes 1 of 2 runs passed. 1 failure is allowed."
    assert held(page) == ("good", said)
    assert "Nothing seen" not in page
    failed = part(page, "failed")
    assert "Invalid, which is allowed" in failed
    assert "bad" not in failed + part(page, "tonight")


def test_an_allowed_failure_does_not_hide_others(history: History, add: Add) -> None:
    add("quick", JUNE_30, "latency", allow_failure=True, **FAILED)
    add("quick", JUNE_30, **FAILED)
    page = page_of(history)
    status, said = held(page)
    assert (status, "1 did not" in said) == ("bad", True)
    assert said.count("invalid") == 1
    first, second = re.findall("<li>(.*?)</li>", part(page, "failed"))
    assert "allowed" not in first
    assert "allowed" in second


def test_skipped_runs_are_named_and_not_green(history: History, add: Add) -> None:
    add("quick", JUNE_30)
    status, said = held(page_of(history, {"quick": ["peak r0", "peak r1"]}))
    assert status == ""
    assert said.startswith("Did everything hold? 2 left out 1 of 1 run passed. ")
    assert said.endswith("2 left out for lack of time: peak r0, peak r1.")


def test_a_failure_outweighs_skipped_runs(history: History, add: Add) -> None:
    add("quick", JUNE_30, **FAILED)
    names = [f"peak r{number}" for number in range(9)]
    status, said = held(page_of(history, {"quick": names}))
    assert status == "bad"
    assert "1 did not" in said
    assert (
        "9 left out for lack of time: peak r0, peak r1, peak r2, peak r3, peak r4, peak r5 and 3 more."
        in said
    )
