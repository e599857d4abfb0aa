"""Reactions of proxies to a fault, and the headline of a fault from its pairs."""

from dataclasses import fields

import pyarrow as pa

from analysis.timelines import schemas
from analysis.timelines.recovering.failover_events import (
    FailoverEvent,
    FailoverKind,
    from_subscriptions,
    reactions_to_fault,
)
from analysis.timelines.recovering.recovery_table import UNAFFECTED, headline, table
from analysis.timelines.recovering.recovery_times import Benchmarks, PairTimes
from analysis.timelines.run_metadata import read_metadata
from experiments.records.summary import RECOVERY
from tests.analysis.timelines.world import CUT, MS, RESTORED, ZERO, S, run_record

FACTS = read_metadata(run_record())
CUT_FAULT = FACTS.faults[0]


def pair(stream=2, client="r3-client-0", fault="cut", **more):
    row = dict.fromkeys(schemas.PAIRS.names) | {"fault": fault, "stream": stream, "client": client}
    values = {
        "affected": True,
        "lost": 0,
        "reasons": [],
        "switch_ns": S,
        "catch_up_ns": 2 * S,
        "settled_ns": S,
    }
    return row | values | {"backlog_events": 5} | more


def act(t, what=FailoverKind.REROUTED, region="r3", peer="r1", stream=2):
    return FailoverEvent(ZERO + t, what, region, peer, stream)


def rows_of(pairs, failover_events=(), deliveries=None):
    return table(pa.Table.from_pylist(pairs, schema=schemas.PAIRS), failover_events, deliveries, FACTS)


def test_detection_is_the_first_act_and_resubscription_the_first_subscription():
    failover_events = [act(CUT + 800 * MS, FailoverKind.NOTICED, peer="r2", stream=None), act(CUT + 900 * MS)]
    (row,) = rows_of([pair()], failover_events).to_pylist()
    assert (row["detect_s"], row["resubscribe_s"], row["switch_s"]) == (0.8, 0.9, 1.0)


def test_only_reactions_of_the_region_to_the_stream_or_lost_peer_count():
    failover_events = [
        act(CUT - 1),  # before the fault
        act(CUT + 1, region="r0"),  # another region
        act(CUT + 2, stream=1),  # another stream
        act(CUT + 3, FailoverKind.NOTICED, peer="r0", stream=None),  # another peer
        act(RESTORED + 1),  # after the next fault
    ]
    assert (
        reactions_to_fault(
            failover_events, CUT_FAULT, ZERO + RESTORED, 2, "r3", struck=frozenset(), routes=FACTS.routes
        )
        == []
    )
    (row,) = rows_of([pair()], failover_events).to_pylist()
    assert (row["detect_s"], row["resubscribe_s"]) == (None, None)
    assert row["reason"] == ("detect_s: no server reacted to it; resubscribe_s: no server resubscribed to it")


def test_logs_are_used_without_packets():
    (row,) = rows_of([pair()], [act(CUT + 700 * MS, FailoverKind.MOVED)]).to_pylist()
    assert row["resubscribe_s"] == 0.7


def test_the_headline_is_the_first_detection_and_the_worst_of_the_rest():
    failover_events = [act(CUT + 800 * MS), act(CUT + 600 * MS, region="r2", peer="r1", stream=3)]
    other = pair(3, "r2-client-0", switch_ns=1500 * MS, backlog_events=9, lost=2)
    unaffected = pair(0, "r1-client-0", affected=False, switch_ns=None, lost=1)
    found, reasons = headline(rows_of([pair(), other, unaffected], failover_events), FACTS)
    cut = found["cut"]
    assert (cut["detect_s"], cut["resubscribe_s"], cut["switch_s"]) == (0.6, 0.8, 1.5)
    assert (cut["backlog_events"], cut["lost"], cut["affected_pairs"]) == (9, 3, 2)
    assert "returned_s" not in cut
    assert reasons == [f"recovery.restore: {UNAFFECTED}"]


def test_a_pair_without_a_figure_makes_the_headline_null_with_its_reason():
    open_one = pair(
        3, "r2-client-0", catch_up_ns=None, reasons=["catch_up_s: 40 events of the gap never came"]
    )
    found, reasons = headline(
        rows_of([pair(), open_one], [act(CUT + S), act(CUT + S, region="r2", stream=3)]), FACTS
    )
    assert found["cut"]["catch_up_s"] is None
    assert found["cut"]["switch_s"] == 1.0
    assert "recovery.cut: catch_up_s: 40 events of the gap never came" in reasons


def test_disorder_comes_from_the_records_per_fault():
    said = dict.fromkeys(schemas.DELIVERIES.names, 0) | {"client": "r3-client-0", "stream": 2}
    said |= {"duplicated_after": [3, 4], "out_of_order_after": [0, 1]}
    deliveries = pa.Table.from_pylist([said], schema=schemas.DELIVERIES)
    rows = rows_of([pair(), pair(fault="restore")], deliveries=deliveries).to_pylist()
    assert [(row["duplicated"], row["out_of_order"]) for row in rows] == [(3, 0), (4, 1)]


def test_subscriptions_name_regions():
    asked = pa.Table.from_pylist(
        [{"host": "r3-proxy-0", "dst": FACTS.hosts["r1-proxy-0"].address, "stream": 2, "t_ns": 4}],
        schema=schemas.SUBSCRIPTIONS,
    )
    rerouted = FailoverEvent(
        4, FailoverKind.REROUTED, "r3", "r1", 2, host="r3-proxy-0", peer_host="r1-proxy-0"
    )
    assert from_subscriptions(asked, FACTS) == [rerouted]


# --- Replicas

KILLED = read_metadata(
    run_record(
        "roles={proxy: 3, configuration: 1, driver: 1, client: 2}",
        "faults=[{name: dead, at: 5s, kill: r2/proxy-2}, {name: back, at: 9s, restart: r2/proxy-2}]",
        "expect=[]",
    )
)


def test_a_chains_reaction_to_a_lost_replica_counts_for_every_pair():
    failover_events = [
        act(CUT + 2 * MS, FailoverKind.NOTICED, region="r2", peer="r2", stream=None),
        act(CUT + 200 * MS, FailoverKind.CONFIGURED, region="r2", peer=None, stream=None),
        act(CUT + 300 * MS, FailoverKind.REROUTED, region="r3", peer="r2", stream=2),
    ]
    (row,) = table(
        pa.Table.from_pylist([pair(fault="dead")], schema=schemas.PAIRS), failover_events, None, KILLED
    ).to_pylist()
    assert (row["detect_s"], row["resubscribe_s"]) == (0.002, 0.3)


def test_the_reaction_of_another_regions_chain_does_not_count():
    elsewhere = [act(CUT + 200 * MS, FailoverKind.CONFIGURED, region="r0", peer=None, stream=None)]
    (dead, _) = KILLED.faults
    assert (
        reactions_to_fault(
            elsewhere, dead, ZERO + RESTORED, 2, "r3", struck=frozenset({"r2"}), routes=FACTS.routes
        )
        == []
    )
    assert (
        reactions_to_fault(
            elsewhere, dead, ZERO + RESTORED, 2, "r0", struck=frozenset({"r2"}), routes=FACTS.routes
        )
        == []
    )


def test_a_returning_replica_restores_no_path():
    figures, _ = headline(rows_of([]), KILLED)
    assert "returned_s" not in figures["back"]


def test_every_measured_recovery_time_has_a_column_and_a_title():
    measured = {field.name for each in (PairTimes, Benchmarks) for field in fields(each)}
    times = {name.removesuffix("_ns") for name in measured if name.endswith("_ns")}
    assert times | {"returned"} == set(schemas.RECOVERY_TIMES)
    assert {f"{name}_s" for name in schemas.RECOVERY_TIMES} < set(RECOVERY)
