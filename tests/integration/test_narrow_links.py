"""Narrow links that are full, lose, jitter and change in mid-flight are as configured, and one that were a
little off would be caught: real packets of a star, judged as configured and as not.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analysis.timelines.links import fidelity
from analysis.timelines.links.traversals import PACKET_COLUMNS, sides, traversals
from analysis.timelines.run_metadata import read_metadata
from experiments.records.run_record import record_from_json
from testbed.pytest_plugin.fixture import Cutset
from tests.integration.lateness import is_violated, skip_if_late

NARROW, LESS_NARROW = ({"rate": rate, "queue": "40packets"} for rate in ("1mbit", "1500kbit"))
ROUGH = {"jitter": "8ms", "loss": "1%"}
STAR: dict[str, Any] = {
    "duration": "12s",
    "faults": [
        {"name": "one-way", "at": "1s", "cut": ["hub", "n"], "direction": "forward", "for": "1s"},
        {"name": "isolated", "at": "2500ms", "isolate": "w", "for": "2500ms"},
        {"name": "down", "at": "3500ms", "cut": ["hub", "w"], "mode": "down", "for": "1s"},
        {"name": "narrow", "at": "7s", "set": ["hub", "w"], "for": "3s", **NARROW},
        {"name": "rough", "at": "7s", "set": ["hub", "s"], "for": "3s", **ROUGH},
        {"name": "both", "at": "8s", "set": ["hub", "n"], "for": "3s", **LESS_NARROW},
    ],
}
ANYHOW = ["invalid", "failed"]  # of a machine that is busy with other things; links are looked at one by one

Row = dict[str, Any]
Plan = dict[str, Any]


def judged(directory: Path, off: Callable[[Plan], None]) -> Iterator[Row]:
    """Yield the fidelity rows for another configuration of the run."""
    run = json.loads((directory / "run.json").read_text())
    off(run["plan"])
    record = record_from_json(run)
    metadata = read_metadata(record)
    packets = pq.read_table(directory / "analysis" / "packets.parquet", columns=list(PACKET_COLUMNS))
    for traversal in traversals(record.plan):
        yield from fidelity.measure_direction(
            traversal.direction, *sides(packets, traversal), metadata
        ).to_pylist()


def shapes(plan: Plan, link: str) -> Iterator[Row]:
    """All that a link is told to be, at first and later."""
    for each in plan["links"]:
        if each["name"] == link:
            yield from (each["forward"], each["backward"])
    yield from (change["parameters"] for change in plan["changes"] if change.get("link") == link)


def violated(rows: Iterator[Row]) -> dict[str, list[str]]:
    """Return the violations by link, without frames that were late at p99."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if is_violated(row):
            found.setdefault(row["link"], []).append(f"{row['direction']} {row['from_s']}: {row['reason']}")
    return found


def assert_none_violated(rows: list[Row], verdict: str) -> None:
    skip_if_late(rows, verdict)
    assert violated(iter(rows)) == {}


@pytest.mark.network
def test_full_links_of_a_star_are_as_configured_and_nothing_a_little_off_is(cutset: Cutset) -> None:
    run = cutset.run("star-outages", set=STAR, on="local", links="relay", allow=ANYHOW)
    (made,) = run.runs
    rows = list(judged(made.directory.path, lambda plan: None))
    assert_none_violated(rows, made.verdict)
    assert sum(row["lost_queue"] for row in rows) > 50
    assert sum(row["lost_chance"] for row in rows if row["link"] in ("hub-n", "hub-s")) > 0
    assert run["events.lost"] == (0,)

    def off(link: str, field: str, change: Callable[[Any], Any]) -> list[str]:
        """Return the links that are violated if this one had been told otherwise."""

        def told(plan: Plan) -> None:
            for shape in shapes(plan, link):
                shape[field] = change(shape[field])

        return list(violated(judged(made.directory.path, told)))

    for link, field, change in (
        ("hub-w", "rate_bits_per_s", lambda rate: round(rate * 1.02)),
        ("hub-w", "rate_bits_per_s", lambda rate: round(rate * 0.98)),
        ("hub-n", "delay_us", lambda delay: delay + 1_000),
        ("hub-s", "delay_us", lambda delay: delay - 1_000),
        ("hub-n", "loss", lambda loss: 0.0),
    ):
        assert off(link, field, change) == [link], field
