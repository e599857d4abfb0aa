"""GossipSub's peers on real packets: what a cut link does not carry comes round it, by other peers."""

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from experiments.records.rundir import RunDirectory
from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("gossipsub")

UNDER_WAY_NS = 10**9
EXPERIMENT = """\
name: peers
topology: three-regions
system: gossipsub
parameters: {sign: false, ping_interval: 60s}
roles: {publisher: 1, subscriber: 1}
workload: {event_size: 100B, rate: 10/s}
duration: 20s
drain: 30s
faults:
  - {name: cut, at: 2s, cut: [r1, r2], for: 12s}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    return run_on_packets(tmp_path_factory.mktemp("gossipsub"), EXPERIMENT)


@pytest.mark.parametrize(("host", "stream"), [("r2-subscriber-0", 1), ("r1-subscriber-0", 2)])
def test_while_the_link_is_cut_events_come_by_the_peer_in_the_third_region(run, host, stream):
    cut, *_, heal = run.read_run().changes
    transfers = pq.read_table(run.table("transfers"))
    mine = transfers.filter(
        pc.and_(pc.equal(transfers.column("receiver"), host), pc.equal(transfers.column("stream"), stream))
    )
    during = pc.and_(
        pc.greater(mine.column("t_complete_ns"), cut.applied_ns + UNDER_WAY_NS),
        pc.less(mine.column("t_complete_ns"), heal.applied_ns),
    )
    senders = mine.filter(during).column("sender").to_pylist()
    assert senders.count("r0-subscriber-0") > 20
    assert set(senders) <= {"r0-subscriber-0", f"{host[:2]}-subscriber-0"}


def test_nothing_is_lost_or_comes_twice_and_packets_say_the_same(run):
    events = run.read_summary()["events"]
    assert events["published"] > 500
    assert events["lost"] == events["duplicated"] == events["stray"] == events["corrupted"] == 0
    agreement = run.read_summary()["agreement"]
    assert (agreement["held"], agreement["disagreements"]) == (True, [])


def test_the_run_says_which_versions_ran(run):
    versions = run.read_run().versions
    assert versions["libp2p"][0].isdigit()
    assert versions["node"].startswith("v")
