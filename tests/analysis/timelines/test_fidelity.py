"""What links did is read from both sides of their middles without being fooled, and held against the
configuration.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.timelines import link_delays
from analysis.timelines.crossings import PACKET_COLUMNS
from analysis.timelines.fidelity import judge
from analysis.timelines.link_delays import Behaviour, Delays, Side, bounds, match, measure, waits
from analysis.timelines.periods import Period, read_periods
from tests.analysis.timelines.world import MS, ZERO, S, run_json

DELAY = 15 * MS
SPAN = (0, 60 * S)


def period(start_s=None, end_s=None, state="up", delay_us=15_000, **more):
    values = {"jitter_us": 0, "loss": 0.0, "rate_bits_per_s": None, "queue_packets": None, "mtu_bytes": 1500}
    start_ns, end_ns = (None if t is None else round(t * S) for t in (start_s, end_s))
    return Period(start_ns, end_ns, state, delay_us, **(values | more))


def side(packets):
    """packets: (time in ns, wire bytes, key) with the key as one number; no key is a pure ACK."""
    columns = [np.array([packet[i] for packet in packets], np.int64) for i in range(2)]
    key = np.array([[packet[2] or 0, 7] for packet in packets], np.int64).reshape(len(packets), 2)
    return Side(*columns, key, np.array([packet[2] is not None for packet in packets], bool))


def steady(count=1000, every=10 * MS, start=S):
    return [(start + n * every, 1514, n) for n in range(count)]


def delayed(packets, by=DELAY):
    return [(t + by, size, key) for t, size, key in packets]


def test_the_same_packet_is_found_on_both_sides():
    near = steady(100)
    (did,) = measure(side(near), side(delayed(near)), [period()], SPAN)
    assert did.delays == Delays(DELAY, DELAY, DELAY)
    assert (did.packets, did.matched, did.loss) == (100, 100, 0.0)


def test_repeated_keys_are_dropped_rather_than_matched_crosswise():
    near = [(1 * S, 66, 5), (2 * S, 66, 5), (3 * S, 1514, 6)]
    far = [(1 * S + DELAY, 66, 5), (2 * S + DELAY, 66, 5), (3 * S + DELAY, 1514, 6)]
    assert [index.tolist() for index in match(side(near), side(far))] == [[2], [2]]


def test_a_key_seen_twice_on_one_side_only_is_no_match():
    near, far = [(1 * S, 66, 5), (2 * S, 66, 5)], [(2 * S + DELAY, 66, 5)]
    assert match(side(near), side(far))[0].tolist() == []
    assert match(side(near), side([]))[0].tolist() == []


def test_nothing_matches_nothing():
    assert match(side([]), side([]))[0].tolist() == []


def test_percentiles_are_over_packets():
    near = steady(100)
    far = [(t + DELAY + (5 * MS if n >= 98 else n * 1000), size, n) for n, (t, size, _) in enumerate(near)]
    (did,) = measure(side(near), side(far), [period()], SPAN)
    assert did.delays == Delays(DELAY, DELAY + 49_000, DELAY + 5 * MS)


def test_each_period_is_measured_by_itself():
    near = steady(2000)
    far = [(t + (DELAY if t < 10 * S else 4 * DELAY), size, key) for t, size, key in near]
    periods = [period(None, 10), period(10, None, delay_us=60_000)]
    first, second = measure(side(near), side(far), periods, SPAN)
    assert (first.delays.min_ns, first.delays.p99_ns) == (DELAY, DELAY)
    assert (second.delays.min_ns, second.delays.p99_ns) == (4 * DELAY, 4 * DELAY)


def test_what_a_cut_swallows_is_no_loss_even_in_flight():
    near = steady(2000, every=MS * 5)
    far = [packet for packet in delayed(near) if packet[0] < 5 * S or packet[0] >= 8 * S + DELAY]
    periods = [period(None, 5), period(5, 8, "blackhole"), period(8, None)]
    before, cut, after = measure(side(near), side(far), periods, SPAN)
    assert before.loss == after.loss == 0.0
    assert cut.leaked == 0
    assert cut.packets > 500


def test_what_crosses_a_cut_link_is_a_leak():
    near = steady(1000)
    periods = [period(None, 5), period(5, 8, "blackhole"), period(8, None)]
    did = measure(side(near), side(delayed(near)), periods, SPAN)[1]
    assert did.leaked == did.packets > 250
    assert judge(periods[1], did)[0] == [f"{did.leaked} packets crossed while the link was blackhole"]


def test_loss_counts_segments():
    near = steady(1000)
    far = [packet for packet in delayed(near) if packet[2] % 10]
    (did,) = measure(side(near), side(far), [period(loss=0.1)], SPAN)
    assert did.loss == pytest.approx(0.1)
    assert judge(period(loss=0.1), did) == ([], None)


def table(packets):
    """packets: (time, payload length, sequence number, IP id); TCP headers as they are with time stamps."""
    columns = dict.fromkeys(PACKET_COLUMNS, np.zeros(len(packets), np.int64))
    t_ns, payload, seq, ip_id = (np.array([packet[i] for packet in packets], np.int64) for i in range(4))
    columns |= {"t_ns": t_ns, "payload_length": payload, "seq": seq, "ip_id": ip_id}
    columns |= {
        "wire_length": payload + 66,
        "payload_offset": np.full(len(packets), 66),
        "proto": np.full(len(packets), 6),
    }
    return pa.table(columns)


def test_an_offloaded_frame_is_found_again_as_its_segments():
    wrap = 2**32 - 1000
    near = link_delays.side(table([(S, 3000, wrap, 65_535), (S + MS, 0, 5, 0), (2 * S, 100, 9000, 7)]), 1500)
    far = table([
        (S + DELAY, 1448, wrap, 65_535), (S + DELAY + 1, 1448, 448, 0), (S + DELAY + 2, 104, 1896, 1),
        (S + MS + DELAY, 0, 5, 0), (2 * S + DELAY, 100, 9000, 7),
    ])  # fmt: skip
    far = link_delays.side(far, 1500)
    assert near.wire_bytes.tolist() == [1514, 1514, 170, 66, 166]
    near_index, far_index = match(near, far)
    assert sorted(far.t_ns[far_index] - near.t_ns[near_index]) == [DELAY, DELAY, DELAY + 1, DELAY + 2]
    (did,) = measure(near, far, [period()], SPAN)
    assert (did.packets, did.matched, did.loss) == (4, 4, 0.0)


def test_waiting_for_the_rate_is_no_excess():
    rate = 1_000_000  # 1250 bytes take 10 ms
    entered = [0, 0, 3, 100, 104]
    left = [10, 20, 30, 110, 120]
    near = [(S + t * MS, 1250, n) for n, t in enumerate(entered)]
    far = [(S + t * MS + DELAY, 1250, n) for n, t in enumerate(left)]
    (did,) = measure(side(near), side(far), [period(rate_bits_per_s=rate)], (0, 60 * S))
    assert did.delays == Delays(DELAY + 10 * MS, DELAY + 16 * MS, DELAY + 27 * MS)
    assert did.excess == Delays(0, 0, 0)
    assert judge(period(rate_bits_per_s=rate), did) == ([], None)


def test_waiting_for_nobody_is_excess():
    near = [(S + n * 100 * MS, 1250, n) for n in range(50)]
    far = [(t + DELAY + 18 * MS, size, key) for t, size, key in near]
    limited = period(rate_bits_per_s=1_000_000)
    (did,) = measure(side(near), side(far), [limited], (0, 60 * S))
    assert did.excess == Delays(8 * MS, 8 * MS, 8 * MS)
    assert judge(limited, did)[0] == ["median 8.00 ms late", "p99 8.00 ms late"]


def test_pure_acks_wait_for_the_rate_and_make_others_wait():
    near = [(S, 1250, None), (S, 1250, 1)]
    far = [(S + DELAY + 10 * MS, 1250, None), (S + DELAY + 20 * MS, 1250, 1)]
    (did,) = measure(side(near), side(far), [period(rate_bits_per_s=1_000_000)], (0, 60 * S))
    assert did.excess == Delays(0, 0, 0)


def test_what_the_queue_dropped_makes_nobody_wait():
    near = [(S, 1250, n) for n in range(5)]
    far = [(S + DELAY + 10 * MS, 1250, 0), (S + DELAY + 20 * MS, 1250, 4)]
    (did,) = measure(side(near), side(far), [period(rate_bits_per_s=1_000_000)], (0, 60 * S))
    assert did.excess == Delays(0, 0, 0)
    assert did.loss == 0.6


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(60, 1514)), min_size=1, max_size=30),
    st.integers(100_000, 100_000_000),
)
def test_waits_are_those_of_a_queue_served_packet_by_packet(gaps, rate):
    t, free, entered, wanted = 0, 0, [], []
    for gap_ms, size in gaps:
        t += gap_ms * MS
        free = max(free, t) + size * 8 * S // rate
        entered.append((t, size, len(entered)))
        wanted.append(free - t)
    near = side(entered)
    assert waits(near, near.data, period(rate_bits_per_s=rate)).tolist() == wanted


def test_the_end_of_the_run_swallows_nothing():
    near = steady(1000)
    far = [packet for packet in delayed(near) if packet[0] < 11 * S - 5 * MS]
    (did,) = measure(side(near), side(far), [period()], (0, 11 * S - 5 * MS))
    assert did.loss == 0.0


def test_a_period_shorter_than_its_guards_holds_nothing():
    start_ns, end_ns = bounds(period(5, 5.02), SPAN)
    assert start_ns == end_ns


def test_the_rate_is_that_of_the_busiest_second():
    near = [(n * 100 * MS, 1250, n) for n in range(10, 20)] + [
        (S * 30 + n * MS, 1250, 100 + n) for n in range(500)
    ]
    (did,) = measure(side(near), side(delayed(near)), [period()], SPAN)
    assert did.rate_bits_per_s == 500 * 10_000


def did(min_ms=15.0, p50_ms=15.0, p99_ms=15.0, packets=10_000, loss=0.0, rate=1e6):
    delays = [round(ms * MS) for ms in (min_ms, p50_ms, p99_ms)]
    excess = [delay - DELAY for delay in delays]
    return Behaviour(packets, packets, 0, Delays(*delays), Delays(*excess), loss, rate)


@pytest.mark.parametrize(
    ("configured", "behaviour", "problem"),
    [
        (period(), did(p50_ms=15.9, p99_ms=19.9), None),
        (period(), did(min_ms=14.9), "a packet took only 14.900 ms"),
        (period(), did(p50_ms=16.1), "median 1.10 ms late"),
        (period(), did(p99_ms=20.1), "p99 5.10 ms late"),
        (period(jitter_us=3000), did(min_ms=12.0, p99_ms=18.0), None),
        (period(), did(loss=0.001), "loss 0.100%"),
        (period(loss=0.01), did(loss=0.0125), None),
        (period(loss=0.01), did(loss=0.02), "loss 2.000%"),
        (period(loss=0.01), did(loss=0.0), "loss 0.000%"),
        (period(rate_bits_per_s=10**6), did(rate=1.06e6), "rate 1.06e+06 bit/s"),
        (period(rate_bits_per_s=10**6), did(rate=1.0e6, loss=0.01), None),
        (period(rate_bits_per_s=10**9), did(rate=1.0e6, loss=0.01), "loss 1.000%"),
        (period(rate_bits_per_s=10**6), did(rate=1.0e6, min_ms=14), "a packet took only 14.000 ms"),
        (period(rate_bits_per_s=10**9), did(p50_ms=80), "median 65.00 ms late"),
    ],
)
def test_behaviour_is_held_against_the_configuration(configured, behaviour, problem):
    problems, note = judge(configured, behaviour)
    assert problems[:1] == ([problem] if problem else [])
    assert note is None


def test_an_idle_period_is_valid_and_says_that_it_proves_nothing():
    assert judge(period(), Behaviour(0, 0, 0)) == ([], "no packets")
    assert judge(period(state="down"), Behaviour(0, 0, 0)) == ([], "no packet tried to cross")


def test_a_link_that_lets_nothing_through_is_invalid():
    assert judge(period(), Behaviour(50, 0, 0, loss=1.0))[0] == ["no packet came out"]


def test_periods_follow_the_changes_that_were_applied():
    run = run_json()
    forward = read_periods(run)["r2-r3", "forward"]
    assert [(p.start_ns and p.start_ns - ZERO, p.end_ns and p.end_ns - ZERO, p.state) for p in forward] == [
        (None, 5 * S, "up"), (5 * S, 9 * S, "blackhole"), (9 * S, None, "up"),
    ]  # fmt: skip
    assert [p.state for p in read_periods(run)["r0-r1", "backward"]] == ["up"]


def test_a_change_that_could_not_be_applied_begins_no_period():
    run = run_json()
    run["changes"][0]["applied_ns"] = None
    forward, backward = (read_periods(run)["r2-r3", way] for way in ("forward", "backward"))
    assert [p.state for p in forward] == ["up", "up"]
    assert [p.state for p in backward] == ["up", "blackhole", "up"]


def test_set_changes_the_configuration_from_its_applied_time_on():
    run = run_json("faults=[{name: slow, at: 6s, set: [r0, r1], delay: 80ms}]", "expect=[]")
    assert [(p.delay_us, p.end_ns) for p in read_periods(run)["r0-r1", "forward"]] == [
        (15_000, ZERO + 6 * S), (80_000, None),
    ]  # fmt: skip
