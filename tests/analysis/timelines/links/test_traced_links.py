"""A link that follows a trace is replayed and judged like any other."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.timelines.links.fidelity import PROVEN, VIOLATED, judge
from analysis.timelines.links.link_behaviour import measure
from analysis.timelines.links.link_segments import link_side
from testbed.links.netem_commands import in_step
from tests.analysis.timelines.emulated import END_NS, MS, Captured, Change, S, emulate, periods_of
from tests.analysis.timelines.links.test_link_replay import traffic
from topologies.link_parameters import LinkParameters
from topologies.link_trace import STEP_US, LinkTrace, TraceSteps

ZERO_NS = 1_500 * MS
TRACED = LinkParameters(
    delay_us=20_000, rate_bits_per_s=6_000_000, queue_packets=200, rate_traced=True, delay_traced=True
)


def steps(values: list[int], more_us: int = 0) -> TraceSteps:
    return TraceSteps("link.trace", "", len(values) * STEP_US + more_us, tuple(values))


RATE = steps([8_000_000, 2_000_000, 0, 0, 12_000_000, 5_000_000, 300_000, 9_000_000], 37_000)
DELAY = steps([30_000, 55_000, 20_000, 90_000, 25_000])
TRACE = LinkTrace(RATE, DELAY)

rates = st.lists(st.sampled_from([0, 0, 400_000, 3_000_000, 40_000_000]), min_size=1, max_size=12).filter(any)
traces = st.builds(
    LinkTrace,
    st.builds(steps, rates, st.integers(0, 99_999)),
    st.builds(steps, st.lists(st.integers(0, 200_000), min_size=1, max_size=9), st.integers(0, 99_999)),
)


def judged(captured: Captured, changes: list[Change]) -> list[tuple[str, str]]:
    return replace(captured, trace=TRACE, zero_ns=ZERO_NS).verdicts(changes)


@pytest.mark.slow
@settings(max_examples=8)
@given(
    traces,
    st.lists(
        st.tuples(st.integers(1_600, 2_600), st.sampled_from(["rate", "delay", "cut", "all"])), max_size=4
    ),
    st.floats(8, 40),
    st.integers(0, 1_000),
)
def test_the_replay_of_a_traced_link_equals_the_relay(trace, later, mean_gap_ms, seed):
    changes = [Change(0, TRACED)]
    for at_ms, what in sorted(later):
        parameters = {
            "rate": TRACED.with_values({"rate_bits_per_s": 2_000_000}),
            "delay": TRACED.with_values({"delay_us": 70_000}),
        }.get(what, TRACED)
        if at_ms * MS > changes[-1].at_ns:
            changes.append(Change(at_ms * MS, parameters, what == "cut"))
    sent = [*traffic(1.5, mean_gap_ms, seed), (3 * S, 100)]
    captured = emulate(changes, sent, seed, trace, ZERO_NS)
    for period, did in zip(periods_of(changes, trace, ZERO_NS), captured.measured(changes), strict=True):
        if period.up and did.excess is not None:
            assert did.early_ns <= 10_000
            assert did.excess.p99_ns <= 10_000
        assert (did.leaked, did.crowded, did.strays, did.unclear) == (0, 0, 0, 0)
        assert judge(period, did).state != VIOLATED, judge(period, did)


def test_a_link_that_follows_its_trace_is_proven_through_faults():
    slow = TRACED.with_values({"rate_bits_per_s": 1_000_000})
    changes = [
        Change(0, TRACED),
        Change(4 * S, slow),
        Change(6 * S, TRACED),
        Change(8 * S, TRACED, blackhole=True),
        Change(9 * S, TRACED),
    ]
    captured = emulate(changes, traffic(11, 10), 1, TRACE, ZERO_NS)
    assert captured.link_direction.dropped_queue > 100
    assert judged(captured, changes) == [(PROVEN, "")] * 5


@pytest.mark.parametrize(
    ("did", "said"),
    [
        (LinkTrace(replace(RATE, values=tuple(round(v * 0.97) for v in RATE.values)), DELAY), "rate -"),
        (LinkTrace(replace(RATE, values=tuple(round(v * 1.03) for v in RATE.values)), DELAY), "too early"),
        (LinkTrace(replace(RATE, values=RATE.values[1:] + RATE.values[:1]), DELAY), "early"),
        (LinkTrace(RATE, replace(DELAY, values=tuple(v + 2_000 for v in DELAY.values))), "median 2"),
        (LinkTrace(RATE, replace(DELAY, values=DELAY.values[1:] + DELAY.values[:1])), "early"),
        (LinkTrace(steps([round(RATE.mean)]), DELAY), "early"),
        (None, ""),  # it never began
    ],
)
def test_a_link_that_does_not_follow_its_trace_is_violated(did, said):
    changes = [Change(0, TRACED)]
    captured = emulate(changes, traffic(9, 12), 1, did or TRACE, ZERO_NS if did else None)
    ((state, reason),) = judged(captured, changes)
    assert state == VIOLATED
    assert said in reason


UNBOUNDED = replace(TRACED, queue_packets=10_000)  # what a full queue drops is not modelled below


def netem(sent: list[tuple[int, int]], late_us: int, slower: float = 1.0) -> Captured:
    """Return the output of a netem that applies each step late: first its delay, then its queue."""
    template = emulate([Change(0, LinkParameters())], sent)
    came, enter_ns, busy_ns = [], 0, 0
    for t_ns, payload in sent:
        delay_us = in_step(UNBOUNDED, TRACE, (t_ns - ZERO_NS) // 1000 - late_us)[0].delay_us
        enter_ns = max(enter_ns, t_ns + delay_us * 1000)
        since_us = (enter_ns - ZERO_NS) // 1000 - late_us
        if since_us >= 0:  # what is held was decided at the step's beginning
            since_us = max(at for at in boundaries_us(since_us) if at <= since_us)
        parameters, hold_us = in_step(UNBOUNDED, TRACE, since_us)
        service_ns = int((payload + 66) * 8 * S / parameters.rate_bits_per_s * slower)
        busy_ns = max(enter_ns + hold_us * 1000, busy_ns) + service_ns
        came.append(busy_ns)
    column = template.far.column_names.index("t_ns")
    far = template.far.set_column(column, "t_ns", [came])
    return replace(template, far=far, trace=TRACE, zero_ns=ZERO_NS)


def boundaries_us(until_us: int) -> list[int]:
    found = [0]
    while found[-1] < until_us:
        found.append(RATE.next_us(found[-1]))
    return found


@pytest.mark.parametrize(("late_us", "slower"), [(0, 1.0), (4_000, 1.0), (0, 1.05), (60_000, 1.0)])
def test_netem_is_proven_with_timely_steps_and_violated_with_late_ones(late_us, slower):
    captured = netem(traffic(9, 3, sizes=(100, 1448)), late_us, slower)
    near, far = link_side(captured.near, 1500), link_side(captured.far, 1500)
    (period,) = periods_of([Change(0, UNBOUNDED)], TRACE, ZERO_NS)
    (did,) = measure(near, far, [period], (0, END_NS), retimes=False)
    as_asked = late_us < 10_000 and slower == 1.0
    assert judge(period, did).state == (PROVEN if as_asked else VIOLATED), judge(period, did)
