"""One port's packets that are slow and lossy on a real link, and all others as before: each is proven by
itself, and a link that did otherwise would be noticed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.timelines.links.fidelity import UNPROVEN, measure_direction
from analysis.timelines.links.periods import Period
from analysis.timelines.links.traversals import sides, traversals
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.records.rundir import RunDirectory
from testbed.cli import main
from tests.integration.lateness import is_violated, skip_if_late

EXPERIMENT = """
name: selected
topology: {name: one-link, regions: {r0: {}, r1: {}}, links: [{between: [r0, r1], delay: 10ms, rate: 1gbit}]}
system: sprinkler
roles: {proxy: 1, driver: 1, client: 1}
workload: {event_size: 500B, rate: 200/s}
duration: 7s
traffic: [{name: stream, from: r0, to: r1, udp: 16mbit, at: 500ms, for: 6s}]
faults: [{name: worse, at: 1s, for: 5s, set: [r0, r1], port: 5201, delay: 40ms, loss: 10%}]
"""
pytestmark = [pytest.mark.network, pytest.mark.slow]
SELECTED = "port 5201"


@dataclass(frozen=True)
class Measured:
    """Both sides' packets of the direction with the stream."""

    near: pa.Table
    far: pa.Table
    metadata: RunMetadata

    def rows(self, metadata: RunMetadata | None = None) -> list[dict[str, Any]]:
        """Return the rows of the direction, judged by this configuration."""
        judged_by = metadata or self.metadata
        return measure_direction(("r0-r1", "forward"), self.near, self.far, judged_by).to_pylist()


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder: Path = tmp_path_factory.mktemp("selected")
    (folder / "selected.yaml").write_text(EXPERIMENT)
    given = ["run", str(folder / "selected.yaml"), "--links", "auto", "--out", str(folder / "runs")]
    assert main.run(given) in {0, 1}
    [path] = (folder / "runs").iterdir()
    run = RunDirectory.open(path)
    packets = pq.read_table(run.table("packets"))
    record = run.read_run()
    [forward] = (each for each in traversals(record.plan) if each.direction == ("r0-r1", "forward"))
    found = Measured(*sides(packets, forward), read_metadata(record))
    skip_if_late(found.rows(), run.read_summary()["verdict"])
    return found


def test_selected_packets_and_all_others_are_proven_by_themselves(measured: Measured) -> None:
    rows = measured.rows()
    assert [
        (row["selected"], row["configured_delay_ms"], row["configured_loss"], row["verdict"] != UNPROVEN)
        for row in rows
    ] == [(None, 10, 0, True), (SELECTED, 10, 0, True), (SELECTED, 40, 0.1, True), (SELECTED, 10, 0, True)]
    assert not any(map(is_violated, rows))
    others, *_, worse, _ = rows
    assert (others["lost_chance"], others["delay_p50_ms"] < 11) == (0, True)
    assert 0.07 < worse["loss"] < 0.13


@pytest.mark.parametrize("change", ["delay", "loss"])
@pytest.mark.parametrize("selected", [True, False])
def test_a_link_that_is_one_millisecond_or_two_percent_off_is_caught(
    measured: Measured, change: str, selected: bool
) -> None:
    def off(period: Period) -> Period:
        if change == "delay":
            return replace(period, delay_us=period.delay_us - 1_000)
        return replace(period, loss=period.loss + 0.02)

    rows = measured.rows(_configured(measured.metadata, off, selected=selected))
    caught = [row for row in rows if (row["selected"] is not None) is selected]
    longest = caught[1] if selected else caught[0]
    assert is_violated(longest)
    assert not any(is_violated(row) for row in rows if row not in caught)


def _configured(metadata: RunMetadata, off: Callable[[Period], Period], *, selected: bool) -> RunMetadata:
    direction = ("r0-r1", "forward")
    if selected:
        [packets] = metadata.selected[direction]
        changed = replace(packets, periods=tuple(map(off, packets.periods)))
        return replace(metadata, selected={direction: (changed,)})
    return replace(metadata, periods={direction: tuple(map(off, metadata.periods[direction]))})
