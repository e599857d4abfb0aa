"""GossipSub's peers on real packets: other peers carry events around a cut link."""

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from experiments.records.rundir import RunDirectory
from tests.systems.on_packets import needs, run_with_cut

pytestmark = needs("gossipsub")

UNDER_WAY_NS = 10**9


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    parameters = "{sign: false, ping_interval: 60s}"
    return run_with_cut(
        tmp_path_factory.mktemp("peers"), "gossipsub", parameters=parameters, cut_s=12, duration=20, rate=10
    )


@pytest.mark.parametrize(("host", "stream"), [("r2-subscriber-0", 1), ("r1-subscriber-0", 2)])
def test_during_a_cut_events_arrive_through_the_third_region(run, host, stream):
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


def test_no_event_is_lost_or_duplicated_and_packets_agree(run):
    events = run.read_summary()["events"]
    assert events["published"] > 500
    assert events["lost"] == events["duplicated"] == events["stray"] == events["corrupted"] == 0
    agreement = run.read_summary()["agreement"]
    assert (agreement["held"], agreement["disagreements"]) == (True, [])
    versions = run.read_run().versions
    assert versions["libp2p"][0].isdigit()
    assert versions["node"].startswith("v")
