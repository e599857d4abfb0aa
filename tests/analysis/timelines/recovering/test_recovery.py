"""Recovery figures of a simulated run equal those computed by hand; `world` describes the run."""

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.arrays import NEVER
from analysis.timelines.delivery.stream_pieces import ClientPieces
from analysis.timelines.recovering.delivery_history import DeliveryHistory
from analysis.timelines.recovering.recovery import GAP, pairs
from analysis.timelines.recovering.recovery_times import PairPieces, measure
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.records.run_record import record_from_json
from tests.analysis.timelines.world import (
    CUT,
    EVERY,
    LAN,
    MS,
    RESTORED,
    RETURNED,
    SWITCHED,
    ZERO,
    S,
    facts_of,
    history_of,
    hop_ns,
    published_ns,
    run_json,
    simulate,
)

DETOUR_NS = hop_ns("r2", "r1") + hop_ns("r1", "r3")  # 79 ms, and as long the other way round


def rows_of(group, metadata: RunMetadata, stream: int):
    rows = pairs(history_of(group, metadata, stream)).to_pylist()
    return {(row["fault"], row["client"]): row for row in rows}


def pairs_of(metadata: RunMetadata, stream: int, **simulated):
    """Return the rows of a stream's pairs by fault and client."""
    return rows_of(simulate(**simulated).stream(stream), metadata, stream)


def affected_by(row, metadata):
    return {
        row(*key, stream)
        for stream in range(4)
        for key, each in pairs_of(metadata, stream).items()
        if each["affected"]
    }


def test_only_streams_that_crossed_the_link_are_affected():
    metadata = facts_of()
    affected = affected_by(lambda fault, client, stream: (fault, stream, client), metadata)
    clients = {(2, "r3-client-0"), (2, "r3-client-1"), (3, "r2-client-0"), (3, "r2-client-1")}
    assert affected == {(fault, *pair) for fault in ("cut", "restore") for pair in clients}


def test_a_one_way_cut_affects_only_its_direction():
    metadata = facts_of("faults=[{name: cut, at: 5s, cut: [r2, r3], direction: forward}]")
    assert pairs_of(metadata, 2)["cut", "r3-client-0"]["affected"]
    assert not pairs_of(metadata, 3)["cut", "r2-client-0"]["affected"]


def test_a_fault_for_the_packets_of_one_process_affects_no_other():
    metadata = facts_of(
        "faults=[{name: slow, at: 5s, set: [r2, r3], of: r3/client-0, delay: 60ms}]", "expect=[]"
    )
    affected = affected_by(lambda _, client, stream: (stream, client), metadata)
    assert affected == {(2, "r3-client-0")}


@pytest.mark.parametrize(("server", "streams"), [("r2/proxy-0", {2, 3}), ("r0/proxy-0", set())])
def test_a_fault_for_the_packets_of_a_server_affects_pairs_whose_events_it_passes(server, streams):
    fault = f"faults=[{{name: slow, at: 5s, set: [r2, r3], of: {server}, delay: 60ms}}]"
    affected = affected_by(lambda _, client, stream: stream, facts_of(fault, "expect=[]"))
    assert affected == streams


def test_a_direction_that_was_cut_later_than_the_other_has_its_gap_from_then_on():
    run = run_json()
    for planned, change in zip(run["plan"]["changes"], run["changes"], strict=True):
        if (planned["fault"], planned["direction"]) == ("cut", "forward"):
            change["applied_ns"] -= 60 * MS
    metadata = read_metadata(record_from_json(run))
    row = pairs_of(metadata, 3)["cut", "r2-client-0"]
    # Events published before their own direction was cut arrived; times count from the fault's first change.
    assert row["switch_ns"] == SWITCHED + 2 * LAN - CUT + 60 * MS
    assert row["backlog_events"] == 500


def test_a_slow_catch_up_lengthens_catch_up_and_settling_but_not_the_switch():
    row = pairs_of(facts_of(), 2, catch_up_batches_per_20ms=2)["cut", "r3-client-0"]
    assert row["switch_ns"] == SWITCHED + 2 * LAN - CUT
    # The backlog of some 51 batches comes two at a time while new ones arrive: the queue is gone after as
    # long again.
    assert 1_450 * MS < row["catch_up_ns"] < 1_600 * MS
    assert row["catch_up_ns"] - DETOUR_NS <= row["settled_ns"] < row["catch_up_ns"] + 400 * MS


def test_after_a_restore_the_streams_return_to_their_owner():
    row = pairs_of(facts_of(), 2)["restore", "r3-client-1"]
    assert (row["old_way"], row["new_way"]) == ("r2 r1 r3", "r2 r3")
    before = max(published_ns(2, n) for n in range(700) if published_ns(2, n) < RETURNED) + DETOUR_NS
    assert row["returned_ns"] == before - RESTORED  # FIFO: it waits for what is still under way on the detour
    assert row["lost"] == 0


def test_latency_that_is_fine_all_along_settles_with_the_first_event():
    row = pairs_of(facts_of(), 2)["restore", "r3-client-0"]
    assert row["settled_ns"] == row["switch_ns"] < DETOUR_NS + EVERY + 3 * LAN


def test_a_missing_return_is_null_with_a_reason():
    row = pairs_of(facts_of(), 3, returned=14 * S)["restore", "r2-client-0"]
    assert row["returned_ns"] is None
    assert "returned_s: the stream did not return to its direct path" in row["reasons"]


def test_a_missing_switch_is_null_with_a_reason():
    group = simulate().stream(2)
    cut_off = (pc.field("host") == "r3-client-0") & (pc.field("t_ns") > ZERO + CUT)
    row = rows_of(group.filter(~cut_off), facts_of(), 2)["cut", "r3-client-0"]
    assert (row["switch_ns"], row["catch_up_ns"], row["settled_ns"], row["backlog_events"]) == (None,) * 4
    assert "switch_s: no event published after the fault ever arrived" in row["reasons"]


def test_killing_a_proxy_affects_streams_through_it():
    metadata = facts_of("faults=[{name: dead, at: 7s, kill: r1/proxy-0}]", "expect=[]")
    affected = affected_by(lambda _, client, stream: (stream, client.split("-")[0]), metadata)
    # All of r1's own, all that comes to r1, and what takes the detour by r1 at 7 s.
    assert affected == {(1, r) for r in ("r0", "r1", "r2", "r3")} | {(s, "r1") for s in range(4)} | {
        (2, "r3"),
        (3, "r2"),
    }


def test_a_lost_event_of_a_rare_stream_shows_the_fault_with_coarse_times():
    times_s = (1, 3.4, 6, 8.2, 11)
    there_ns = np.array([ZERO + round(s * S) for s in times_s], np.int64)
    came_ns = there_ns + 30 * MS
    lost_ns = np.where(np.array(times_s) == 6, NEVER, came_ns)
    numbers, count = np.arange(5) + 1, np.ones(5, np.int64)
    cut = ClientPieces(
        numbers, count, there_ns, ("r3-client-0", "r1-client-0"), np.stack((lost_ns, came_ns)), None,
        np.ones((2, 5), bool),
    )  # fmt: skip
    metadata = facts_of("faults=[{name: cut, at: 5s, cut: [r2, r3], for: 2s}]")
    rows = {row["client"]: row for row in pairs(DeliveryHistory(metadata, 2, cut, {})).to_pylist()
            if row["fault"] == "cut"}  # fmt: skip
    assert (rows["r1-client-0"]["affected"], rows["r3-client-0"]["affected_by"]) == (False, GAP)
    assert rows["r3-client-0"]["switch_ns"] == round(3.23 * S)
    assert (
        "events were published 2.6 s apart, so times are no finer than that" in rows["r3-client-0"]["reasons"]
    )


def test_a_disturbed_client_is_affected_only_by_its_own_fault():
    faults = (
        "faults=[{name: dead, at: 5s, kill: r2/proxy-0}, {name: gone, at: 6s, leave: r3/client-0}]",
        "expect=[]",
    )
    rows = pairs_of(facts_of(*faults), 2)
    affected = {(fault, client) for (fault, client), row in rows.items() if row["affected"]}
    assert {client for fault, client in affected if fault == "gone"} == {"r3-client-0"}
    assert ("dead", "r3-client-0") not in affected
    assert ("dead", "r3-client-1") in affected


def test_losses_before_the_restore_count_for_the_cut():
    arrived = (pc.field("host") == "r3-client-0") & (pc.field("kind") == "arrived")
    gone = arrived & (pc.field("t_ns") > ZERO + CUT) & (pc.field("t_ns") < ZERO + RESTORED)
    rows = rows_of(simulate().stream(2).filter(~gone), facts_of(), 2)
    (lost,) = {key: row["lost"] for key, row in rows.items() if row["lost"]}.items()
    assert lost[0] == ("cut", "r3-client-0")
    assert lost[1] > 1_000


def test_lost_events_count_for_the_fault_during_which_they_were_due():
    arrived = (pc.field("host") == "r3-client-0") & (pc.field("kind") == "arrived")
    gone = arrived & (pc.field("first_seq") >= 2501) & (pc.field("first_seq") < 2541)
    rows = rows_of(simulate().stream(2).filter(~gone), facts_of(), 2)
    row = rows["cut", "r3-client-0"]
    assert {key: row["lost"] for key, row in rows.items() if row["lost"]} == {("cut", "r3-client-0"): 40}
    assert row["catch_up_ns"] is None
    assert "catch_up_s: 40 events of the gap never came" in row["reasons"]


def pair(*batches):
    """batches: (count, published, came) in seconds after the fault; None: never."""
    count, published, came = (
        np.array([NEVER if row[i] is None else round(row[i] * scale) for row in batches], np.int64)
        for i, scale in enumerate((1, S, S))
    )
    return PairPieces(
        count, published + ZERO, np.where(came == NEVER, NEVER, came + ZERO), np.zeros(len(count), np.int64)
    )


def test_without_anything_published_nothing_can_be_measured():
    times = measure(pair((10, -1, -0.9)), ZERO, until_ns=ZERO + 5 * S)
    assert (times.switch_ns, times.catch_up_ns, times.settled_ns, times.backlog_events) == (None,) * 4
    assert set(times.reasons) == {"switch_s", "catch_up_s", "settled_s", "backlog_events"}


def test_without_a_baseline_settling_is_null_with_a_reason():
    times = measure(pair((10, 1, 1.1), (10, 2, 2.1), (10, 4, 4.1)), ZERO, until_ns=ZERO + 5 * S)
    assert times.settled_ns is None
    assert "no baseline" in times.reasons["settled_s"]
    assert times.switch_ns == 1_100 * MS


def test_a_single_late_batch_within_two_seconds_of_good_ones_does_not_unsettle():
    good = [(10, n / 10, n / 10 + 0.02) for n in range(-50, 50) if n not in (0, 1, 2, 3)]
    slow = [(10, n / 10, 0.35 + n / 100) for n in range(4)]
    late = [(3, 1.01, 1.2)]
    times = measure(pair(*good, *slow, *late), ZERO, until_ns=ZERO + 5 * S)
    assert times.settled_ns == 400 * MS  # the bin that begins at 0.4 s is the first good one


def test_a_second_dip_within_two_seconds_delays_settling():
    good = [(10, n / 10, n / 10 + 0.02) for n in range(-50, 50) if n not in (10, 11, 12)]
    dip = [(10, n / 10, 1.4) for n in (10, 11, 12)]
    times = measure(pair(*good, *dip), ZERO, until_ns=ZERO + 5 * S)
    assert times.settled_ns == 1_400 * MS


def test_latency_that_stays_high_never_settles():
    before = [(10, n / 10, n / 10 + 0.02) for n in range(-50, 0)]
    after = [(10, n / 10, n / 10 + 0.03) for n in range(50)]
    times = measure(pair(*before, *after), ZERO, until_ns=ZERO + 5 * S)
    assert times.settled_ns is None
    assert "did not stay within 20 %" in times.reasons["settled_s"]


def test_a_run_that_ends_too_early_cannot_settle():
    before = [(10, n / 10, n / 10 + 0.02) for n in range(-50, 15)]
    times = measure(pair(*before), ZERO, until_ns=ZERO + 1_500 * MS)
    assert times.reasons["settled_s"] == "the run ended within 2 s of the fault"


@st.composite
def histories(draw):
    """Draw batches (count, published, arrived) in milliseconds around the fault; some never arrive."""
    times = st.integers(-1000, 4000)
    batch = st.tuples(st.integers(1, 5), times, st.one_of(st.none(), st.integers(0, 2000)))
    rows = draw(st.lists(batch, min_size=1, max_size=25))
    return [(count, t, None if wait is None else t + wait) for count, t, wait in rows]


@given(histories())
def test_switch_catch_up_and_backlog_equal_an_event_by_event_computation(rows):
    times = measure(
        pair(*((n, t / 1e3, c if c is None else c / 1e3) for n, t, c in rows)), ZERO, until_ns=ZERO + 9 * S
    )
    events = [(t, c) for n, t, c in rows for _ in range(n)]
    after = [c for t, c in events if t >= 0 and c is not None]
    if not after:
        assert times.switch_ns is None
        return
    assert times.switch_ns == min(after) * MS
    gap = [c for t, c in events if t <= min(after) and (c is None or c >= 0)]
    assert times.catch_up_ns == (None if None in gap else max(gap) * MS)
    end = 9_000 if None in gap else min(max(gap), 9_000)
    instants = [t for t, _ in events if 0 <= t <= end]
    behind = [sum(t <= now and (c is None or c > now) for t, c in events) for now in instants]
    assert times.backlog_events == max(behind, default=0)
