"""Mosquitto's bridges on real packets: a link fails and returns, a broker is killed and restarted."""

import re

import pytest

from experiments.records.rundir import RunDirectory
from node.core.deliveries import RecordKind, read_records
from testbed.cli import main
from tests.systems.on_packets import lost_events, needs, output, run_with_cut

pytestmark = needs("mosquitto", always=True)

FAULTS = """
  {name: cut, at: 2s, cut: [r1, r2], for: 3s},
  {name: end, at: 6s, kill: r0/broker-0},
  {name: again, at: 7s, restart: r0/broker-0}"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    return run_with_cut(
        tmp_path_factory.mktemp("mosquitto"), "mosquitto", "broker",
        parameters="{queued_messages: 20}", cut_s=3, duration=10, faults=FAULTS,
    )  # fmt: skip


def dropped_for(run: RunDirectory, region: str) -> set[str]:
    """Return the sessions whose queue was full at the region's broker, according to its log."""
    log = run.log(f"{region}-broker-0").read_text()
    return set(re.findall(r"being dropped for client ([^ ]+?)\.\"", log))


def test_events_beyond_a_bridges_queue_are_lost_behind_it(run):
    found = lost_events(run)
    queued = 20
    most = 50 * (3 + 7)  # until TCP tries again
    assert most > found[1, "r2-subscriber-0"] > 50 * 3 - 5 * queued
    assert most > found[2, "r1-subscriber-0"] > 50 * 3 - 5 * queued
    assert "r2-broker-0.r2-from-r1" in dropped_for(run, "r1")
    assert "r1-broker-0.r1-from-r2" in dropped_for(run, "r2")


@pytest.mark.parametrize(("stream", "region"), [(1, "r1"), (2, "r2")])
def test_clients_not_behind_the_bridge_lose_only_what_their_broker_dropped(run, stream, region):
    """Allow drops at a subscriber, whose queue is as short as a bridge's: a busy machine fills it, too."""
    is_lossy = (stream, f"{region}-subscriber-0") in lost_events(run)
    assert not is_lossy or f"{region}/subscriber-0" in dropped_for(run, region)


def test_a_killed_broker_is_one_process_with_two_generations(run):
    record = run.read_run()
    ends = [each.exit for each in record.processes if each.name == "r0/broker-0"]
    assert next(end.signal for end in ends if end is not None) == 9
    assert len(ends) == 2
    assert all(end.expected for end in ends)
    assert sum("running" in line for line in output(run, "r0-broker-0")) == 2


def test_events_are_only_lost_and_packets_and_clients_agree(run):
    events, agreement = run.read_summary()["events"], run.read_summary()["agreement"]
    assert events["published"] > 1000
    assert events["stray"] == events["corrupted"] == events["published_twice"] == 0
    assert (agreement["held"], agreement["disagreements"]) == (True, [])
    assert agreement["compared"] > 9
    versions = run.read_run().versions
    assert versions["mosquitto"].startswith("mosquitto version ")
    assert versions["paho.mqtt"]


def an_event_that_came(run: RunDirectory) -> int:
    """Return an event of stream 0 at r2's subscriber: with so short a queue, a busy broker drops some."""
    records, _ = read_records(run.host_deliveries("r2-subscriber-0").read_bytes())
    return next(each.first_seq for each in records if each.kind == RecordKind.DELIVERED and each.stream == 0)


def test_an_event_is_followed_from_broker_to_broker(run, capsys):
    assert main.run(["follow", str(run.path), "r0", str(an_event_that_came(run))]) == 0
    said = capsys.readouterr().out
    assert "r0-publisher-0 -> r0-broker-0" in said
    assert "r2-broker-0 -> r2-subscriber-0" in said
