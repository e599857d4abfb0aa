"""A system that multicasts, on real packets: three regions, a cut, and a member that is killed."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from experiments.records.rundir import RunDirectory
from tests.systems.on_packets import run_on_packets

EXPERIMENT = """\
name: groups
topology:
  regions: {r0: {lan: {delay: 1ms}}, r1: {lan: {delay: 1ms}}, r2: {lan: {delay: 1ms}}}
  links:
    - {between: [r0, r1], delay: 5ms}
    - {between: [r1, r2], delay: 20ms}
system: ./groups
roles: {r0: {publisher: 1, subscriber: 2}, r1: {subscriber: 1}, r2: {publisher: 1, subscriber: 1}}
workload: {event_size: 2000B, rate: 20/s}
duration: 6s
drain: 1s
faults:
  - {name: cut, at: 1s, cut: [r1, r2], for: 2s}
  - {name: kill, at: 3500ms, kill: r0/subscriber-1}
  - {name: restart, at: 5s, restart: r0/subscriber-1}
"""
RELAYED = """\
name: relayed
topology: two-regions
system: ./groups/relays.yaml
roles: {r0: {server: 1, publisher: 1, subscriber: 1}, r1: {publisher: 1, subscriber: 1}}
workload: {event_size: 100B, rate: 20/s}
duration: 2s
drain: 1s
"""
BUNDLED = """\
name: bundled
topology:
  regions: {r0: {}, r1: {}}
  links: [{between: [r0, r1], delay: 20ms, loss: 5%, rate: 2mbit}]
system: ./groups
parameters: {bundle: 10}
roles: {r0: {publisher: 1}, r1: {subscriber: 1}}
workload: {event_size: 200B, rate: 500/s}
duration: 4s
drain: 1s
"""
PUBLISHED = 120  # by each publisher at least: on a busy machine it is stopped some events later


def run_here(folder: Path, experiment: str) -> RunDirectory:
    shutil.copytree(Path(__file__).parent / "groups", folder / "groups")
    return run_on_packets(folder, experiment)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return run_here(tmp_path_factory.mktemp("groups"), EXPERIMENT)


@pytest.mark.network
@pytest.mark.slow
class TestGroups:
    def test_members_in_all_regions_get_all_events_while_links_are_up(self, run: RunDirectory) -> None:
        summary = run.read_summary()
        assert summary["events"]["published"] >= 2 * PUBLISHED
        assert summary["events"]["stray"] == summary["convergence"]["stalled"] == 0
        assert summary["events"]["lost"] == summary["recovery"]["cut"]["lost"] > 100
        assert summary["agreement"]["held"] is True

    def test_the_cut_affects_the_streams_that_crossed_the_link_and_nothing_else(
        self, run: RunDirectory
    ) -> None:
        cut = run.read_summary()["recovery"]["cut"]
        assert cut["affected_pairs"] == 3  # of r0-subscriber-0, r1-subscriber-0 and r2-subscriber-0
        assert 2 <= cut["switch_s"] < 3

    def test_a_killed_member_is_affected_until_it_gets_events_again(self, run: RunDirectory) -> None:
        killed = run.read_summary()["recovery"]["kill"]
        assert killed["affected_pairs"] == 2  # of one member, and both publishers
        assert 1.5 < killed["switch_s"] < 3

    def test_a_message_to_a_group_counts_once_per_current_member(self, run: RunDirectory) -> None:
        rows = pq.read_table(run.table("transfers")).to_pylist()
        fates: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            assert row["dst"] == "239.7.7.7"
            fates.setdefault((row["sender"], row["receiver"]), []).append(row["fate"])
        sent = {here: len(fates[f"{here}-publisher-0", "r0-subscriber-0"]) for here in ("r0", "r2")}
        assert sum(sent.values()) == run.read_summary()["events"]["published"]
        assert {way: len(found) for way, found in fates.items() if "r0-subscriber-1" not in way} == {
            (f"{here}-publisher-0", f"{there}-subscriber-0"): sent[here]
            for here in ("r0", "r2")
            for there in ("r0", "r1", "r2")
        }
        killed = fates["r0-publisher-0", "r0-subscriber-1"]
        assert 50 < len(killed) < PUBLISHED - 20
        assert set(killed) == {"arrived"}
        assert set(fates["r2-publisher-0", "r1-subscriber-0"]) == {"arrived", "lost"}

    def test_packets_to_a_group_prove_the_links(self, run: RunDirectory) -> None:
        periods = {
            (row["link"], row["direction"], row["state"]): row
            for row in pq.read_table(run.table("fidelity")).to_pylist()
        }
        assert len(periods) == 6
        for (link, direction, state), row in periods.items():
            assert row["verdict"] != "unproven", (link, direction)
            assert (row["loss"] == 0) if state == "up" else row["packets"] > 60


@pytest.mark.network
@pytest.mark.slow
def test_bundles_of_datagrams_to_a_group_prove_a_links_loss_rate_and_delay(tmp_path: Path) -> None:
    run = run_here(tmp_path, BUNDLED)
    (row,) = (
        row
        for row in pq.read_table(run.table("fidelity")).to_pylist()
        if (row["link"], row["direction"]) == ("r0-r1", "forward")
    )
    assert row["verdict"] != "unproven"
    assert row["packets"] > 1_500
    assert row["loss_low"] <= 0.05 <= row["loss_high"]
    assert row["delay_min_ms"] >= 20
    assert row["delay_p50_ms"] > 23  # a bundle's 2,420 bytes take 9.7 ms at 2 Mbit/s


@pytest.mark.network
@pytest.mark.slow
def test_a_server_relays_events_from_one_group_to_another(tmp_path: Path) -> None:
    run = run_here(tmp_path, RELAYED)
    summary = run.read_summary()
    assert summary["events"]["published"] >= 80
    assert summary["events"]["lost"] == 0
    assert summary["agreement"]["held"] is True
    rows = pq.read_table(run.table("transfers")).to_pylist()
    assert {(row["receiver"], row["dst"], row["type"], row["fate"]) for row in rows} == {
        ("r0-server-0", "239.7.7.7", "NEW_EVENT", "arrived"),
        ("r0-subscriber-0", "239.7.7.8", "PASSED_EVENT", "arrived"),
        ("r1-subscriber-0", "239.7.7.8", "PASSED_EVENT", "arrived"),
    }
    assert len(rows) == 3 * summary["events"]["published"]
