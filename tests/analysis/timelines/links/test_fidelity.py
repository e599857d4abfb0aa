"""Link behaviour is measured correctly from both sides of the emulators and compared with the plan."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats

from analysis.timelines.links import link_segments
from analysis.timelines.links.fidelity import PROVEN, UNPROVEN, VIOLATED, PeriodVerdict, judge, loss_interval
from analysis.timelines.links.link_behaviour import Behaviour, DelayPercentiles, measure
from analysis.timelines.links.link_flow import Losses
from analysis.timelines.links.link_segments import LinkSide, match
from analysis.timelines.links.periods import Period, read_periods, read_selected
from analysis.timelines.links.traversals import PACKET_COLUMNS
from experiments.records.run_record import record_from_json
from tests.analysis.timelines.world import MS, ZERO, S, run_json, run_record

DELAY = 15 * MS
SPAN = (0, 60 * S)


def period(start_s=None, end_s=None, state="up", delay_us=15_000, **more):
    values = {"jitter_us": 0, "loss": 0.0, "rate_bits_per_s": None, "queue_packets": None, "mtu_bytes": 1500}
    start_ns, end_ns = (None if t is None else round(t * S) for t in (start_s, end_s))
    shape = {"delay_us": delay_us, **values, **more}
    return Period(start_ns=start_ns, end_ns=end_ns, state=state, **shape)


def side(packets):
    """packets: (time in ns, wire bytes, key) with the key as one number; no key is a pure ACK."""
    columns = [np.array([packet[i] for packet in packets], np.int64) for i in range(2)]
    key = np.array([[-1 if packet[2] is None else packet[2], 7] for packet in packets], np.int64)
    number = np.arange(len(packets))
    return LinkSide(*columns, key.reshape(len(packets), 2), number, np.ones_like(number))


def steady(count=1000, every=10 * MS, start=S):
    return [(start + n * every, 1514, n) for n in range(count)]


def delayed(packets, by=DELAY):
    return [(t + by, size, key) for t, size, key in packets]


def test_repeated_keys_are_dropped_rather_than_matched_crosswise():
    near = [(1 * S, 66, 5), (2 * S, 66, 5), (3 * S, 1514, 6)]
    far = [(1 * S + DELAY, 66, 5), (2 * S + DELAY, 66, 5), (3 * S + DELAY, 1514, 6)]
    found = match(side(near), side(far))
    assert (found.near.tolist(), found.far.tolist()) == ([2], [2])
    assert (found.unclear.tolist(), found.strays.tolist()) == ([True, True, False], [])


def test_a_key_seen_twice_on_one_side_only_is_no_match():
    near, far = [(1 * S, 66, 5), (2 * S, 66, 5)], [(2 * S + DELAY, 66, 5)]
    assert match(side(near), side(far)).near.tolist() == []
    assert match(side(near), side([])).near.tolist() == []


def test_percentiles_are_over_packets():
    near = steady(100)
    far = [(t + DELAY + (5 * MS if n >= 98 else n * 1000), size, n) for n, (t, size, _) in enumerate(near)]
    (did,) = measure(side(near), side(far), [period()], SPAN)
    assert did.delays == DelayPercentiles(DELAY, DELAY + 49_000, DELAY + 5 * MS)


def test_packets_across_a_cut_link_are_a_leak():
    near = steady(1000)
    periods = [period(None, 5), period(5, 8, "blackhole"), period(8, None)]
    did = measure(side(near), side(delayed(near)), periods, SPAN)[1]
    assert did.leaked == did.packets > 250
    said = f"{did.leaked} packets crossed while the link was blackhole"
    assert judge(periods[1], did) == PeriodVerdict(VIOLATED, said)


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
    entered = [(S, 3000, wrap, 65_535), (S + MS, 0, 5, 0), (2 * S, 100, 9000, 7)]
    near = link_segments.link_side(table(entered), 1500)
    far = table([
        (S + DELAY, 1448, wrap, 65_535), (S + DELAY + 1, 1448, 448, 0), (S + DELAY + 2, 104, 1896, 1),
        (S + MS + DELAY, 0, 5, 0), (2 * S + DELAY, 100, 9000, 7),
    ])  # fmt: skip
    far = link_segments.link_side(far, 1500)
    assert near.wire_bytes.tolist() == [1514, 1514, 170, 66, 166]
    found = match(near, far)
    assert sorted(far.t_ns[found.far] - near.t_ns[found.near]) == [
        DELAY, DELAY, DELAY, DELAY + 1, DELAY + 2
    ]  # fmt: skip
    (did,) = measure(near, far, [period()], SPAN)
    assert (did.packets, did.matched, did.loss) == (5, 5, 0.0)


def test_packets_in_flight_at_the_end_are_not_lost():
    near = steady(1000)
    far = [packet for packet in delayed(near) if packet[0] < 11 * S - 5 * MS]
    (did,) = measure(side(near), side(far), [period()], (0, 11 * S - 5 * MS))
    assert did.loss == 0.0


def did(p50_ms=0.0, p99_ms=0.0, early_us=0, lost=0, at_risk=10_000, **more):
    delays = DelayPercentiles(DELAY, DELAY, DELAY)
    excess = DelayPercentiles(0, round(p50_ms * MS), round(p99_ms * MS))
    figures = {"early_ns": early_us * 1000, "late_p99_ns": excess.p99_ns} | more
    return Behaviour(10_000, 10_000 - lost, 0, Losses(lost), at_risk, delays=delays, excess=excess, **figures)


@pytest.mark.parametrize(
    ("configured", "behaviour", "problem"),
    [
        (period(), did(p50_ms=0.4, p99_ms=4.9), None),
        (period(), did(early_us=100), "a packet came 0.100 ms too early"),
        (period(), did(p50_ms=0.6), "median 0.60 ms late"),
        (period(delay_us=150_000), did(p50_ms=0.6), "median 0.60 ms late"),
        (period(), did(p99_ms=5.1), "p99 5.10 ms late"),
        (period(delay_us=150_000), did(p99_ms=14.9), None),
        (period(loss=0.01), did(lost=125), None),
        (
            period(loss=0.01),
            did(lost=150),
            "150 of 10000 packets were lost by chance (1.500%; confidence interval",
        ),
        (period(loss=0.01), did(lost=0), "0 of 10000 packets were lost by chance (0.000%; confidence"),
        (period(), did(lost=1), "1 of 10000 packets were lost by chance (0.010%; confidence interval"),
        (period(rate_bits_per_s=10**6), did(rate_part=0.991), None),
        (period(rate_bits_per_s=10**6), did(rate_part=0.98), "rate -2.0% off"),
        (period(rate_bits_per_s=10**6), did(rate_part=1.02), "rate +2.0% off"),
        (period(rate_bits_per_s=10**6), did(crowded=3), "3 packets passed a queue that was longer"),
    ],
)
def test_behaviour_is_compared_with_the_configuration(configured, behaviour, problem):
    found = judge(configured, behaviour)
    assert found.state == (VIOLATED if problem else PROVEN)
    assert (found.reason or "").startswith(problem or "")


def test_a_loss_has_the_confidence_interval_of_clopper_and_pearson():
    binomial = scipy.stats.binomtest(42, 4804).proportion_ci(1 - 1e-4, "exact")
    assert loss_interval(42, 4804) == pytest.approx((binomial.low, binomial.high), rel=1e-9)
    assert loss_interval(0, 100)[0] == 0.0
    assert loss_interval(100, 100)[1] == 1.0
    assert loss_interval(0, 0) == (None, None)


def test_an_idle_period_is_unproven():
    assert judge(period(), Behaviour(0, 0, 0)) == PeriodVerdict(UNPROVEN, "no packets")
    assert judge(period(state="down"), Behaviour(0, 0, 0)) == PeriodVerdict(
        UNPROVEN, "no packet tried to cross"
    )


def test_a_period_shorter_than_its_guards_is_unproven():
    short = period(5, 5.02)
    (_, found, _) = measure(
        side(steady()), side(delayed(steady())), [period(None, 5), short, period(5.02)], SPAN
    )
    assert judge(short, found) == PeriodVerdict(UNPROVEN, "it lasted for 20 ms only")


def test_a_cut_that_dropped_packets_is_proven():
    assert judge(period(state="blackhole"), Behaviour(5, 0, 0)) == PeriodVerdict(PROVEN)


def test_a_link_without_delivered_packets_is_violated():
    nothing = Behaviour(50, 0, 0, Losses(50), 50)
    assert judge(period(), nothing) == PeriodVerdict(VIOLATED, "no packet came through")
    assert judge(period(loss=1.0), nothing).state == PROVEN


def test_large_clock_errors_leave_a_link_unproven():
    vague = did(error_bound_ns=2 * MS, sure_excess=DelayPercentiles(0, 0, 0), sure_least_ns=DELAY)
    found = judge(period(), vague)
    assert (found.state, "the clock error of 2.000 ms is too large" in found.reason) == (UNPROVEN, True)


def test_periods_follow_the_changes_that_were_applied():
    run = run_record()
    forward = read_periods(run)["r2-r3", "forward"]
    assert [(p.start_ns and p.start_ns - ZERO, p.end_ns and p.end_ns - ZERO, p.state) for p in forward] == [
        (None, 5 * S, "up"), (5 * S, 9 * S, "blackhole"), (9 * S, None, "up"),
    ]  # fmt: skip
    assert [p.state for p in read_periods(run)["r0-r1", "backward"]] == ["up"]


def test_a_change_that_could_not_be_applied_begins_no_period():
    run = run_json()
    run["changes"][0]["applied_ns"] = None
    forward, backward = (read_periods(record_from_json(run))["r2-r3", way] for way in ("forward", "backward"))
    assert [p.state for p in forward] == ["up", "up"]
    assert [p.state for p in backward] == ["up", "blackhole", "up"]


def test_selections_of_a_link_are_in_the_order_in_which_they_changed_it():
    elsewhere = "{name: e, at: 1s, set: [r0, r1], of: r2/proxy-0, delay: 80ms}"
    port = "{name: p, at: 2s, set: [r1, r2], port: 9, delay: 80ms}"
    process = "{name: o, at: 3s, set: [r1, r2], of: r2/proxy-0, delay: 80ms}"
    selected = read_selected(run_record(f"faults=[{elsewhere}, {port}, {process}]", "expect=[]"))
    assert [each.port for each in selected["r1-r2", "forward"]] == [9, None]
    assert [each.port for each in selected["r0-r1", "forward"]] == [None]


def test_set_changes_the_configuration_from_its_applied_time_on():
    run = run_record("faults=[{name: slow, at: 6s, set: [r0, r1], delay: 80ms}]", "expect=[]")
    assert [(p.delay_us, p.end_ns) for p in read_periods(run)["r0-r1", "forward"]] == [
        (15_000, ZERO + 6 * S), (80_000, None),
    ]  # fmt: skip
