"""The replay of the configured link equals the relay to the nanosecond; an emulator with another behaviour is
detected.
"""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.timelines.links.fidelity import PROVEN, UNPROVEN, VIOLATED, judge
from tests.analysis.timelines.emulated import MS, Captured, Change, S, emulate, periods_of
from topologies.link_parameters import LinkParameters

NARROW = LinkParameters(delay_us=20_000, rate_bits_per_s=10_000_000, queue_packets=60)
SIZES = (0, 100, 1448, 1448, 3 * 1448, 20 * 1448, 44 * 1448 + 7)


def traffic(seconds: float, mean_gap_ms: float, seed: int = 3, sizes: tuple[int, ...] = SIZES):
    """Return frames of all sizes at random times."""
    chance, found, t_ns = Random(seed), [], 1 * S
    while t_ns < (1 + seconds) * S:
        t_ns += int(chance.expovariate(1 / mean_gap_ms) * MS)
        found.append((t_ns, chance.choice(sizes)))
    return found


def states(captured: Captured, changes: list[Change]) -> list[str]:
    return [state for state, _ in captured.verdicts(changes)]


parameters_of = st.builds(
    LinkParameters,
    delay_us=st.sampled_from([0, 1_000, 30_000, 150_000]),
    loss=st.sampled_from([0.0, 0.0, 0.05]),
    rate_bits_per_s=st.sampled_from([None, 2_000_000, 20_000_000, 1_000_000_000]),
    queue_packets=st.sampled_from([None, 10, 100]),
)
changed = st.lists(st.tuples(st.integers(1_100, 2_000), parameters_of, st.booleans()), max_size=4)


@given(parameters_of, changed, st.floats(1, 30), st.integers(0, 1_000))
def test_the_replay_equals_the_relay_to_the_nanosecond(first, later, mean_gap_ms, seed):
    changes = [Change(0, first)]
    for at_ms, parameters, blackhole in sorted(later, key=lambda each: each[0]):
        if at_ms * MS > changes[-1].at_ns:
            changes.append(Change(at_ms * MS, parameters, blackhole))
    captured = emulate(changes, traffic(1.2, mean_gap_ms, seed), seed)
    assert captured.near.num_rows > 5
    for period, did in zip(periods_of(changes), captured.measured(changes), strict=True):
        if period.up and did.excess is not None:
            assert (did.excess.min_ns, did.excess.p99_ns, did.early_ns) == (0, 0, 0)
        assert (did.leaked, did.crowded, did.strays, did.unclear) == (0, 0, 0, 0)
        assert judge(period, did).state != VIOLATED, judge(period, did)


def test_causes_of_loss_are_distinguished():
    lossy = replace(NARROW, loss=0.02)
    changes = [Change(0, lossy), Change(3 * S, lossy, blackhole=True), Change(4 * S, lossy)]
    captured = emulate(changes, traffic(5, 15))
    link_direction, found = captured.link_direction, [did.lost for did in captured.measured(changes)]
    assert link_direction.dropped_queue > 300
    assert sum(lost.queue for lost in found) == pytest.approx(link_direction.dropped_queue, rel=0.03)
    assert sum(lost.chance for lost in found) == pytest.approx(link_direction.dropped_loss, rel=0.35)
    assert sum(lost.cut for lost in found) == pytest.approx(link_direction.dropped_blackhole, rel=0.05)
    assert states(captured, changes) == [PROVEN] * 3


OVERLOADED = [
    LinkParameters(delay_us=150_000, rate_bits_per_s=10_000_000),
    LinkParameters(delay_us=20_000, rate_bits_per_s=20_000_000, loss=0.005),
    LinkParameters(delay_us=30_000, jitter_us=5_000, rate_bits_per_s=15_000_000, queue_packets=80, loss=0.01),
    LinkParameters(delay_us=10_000, jitter_us=8_000, rate_bits_per_s=15_000_000, reorder=True),
]


@pytest.mark.parametrize("parameters", OVERLOADED)
def test_an_overloaded_link_as_configured_is_proven(parameters):
    changes = [
        Change(0, parameters),
        Change(4 * S, replace(parameters, rate_bits_per_s=5_000_000)),
        Change(7 * S, replace(parameters, delay_us=parameters.delay_us + 40_000, rate_bits_per_s=30_000_000)),
        Change(9 * S, parameters, blackhole=True),
        Change(10 * S, replace(parameters, rate_bits_per_s=None)),
        Change(12 * S, parameters),
    ]
    captured = emulate(changes, traffic(15, 4), 0)
    assert captured.link_direction.dropped_queue > 1_000
    found = captured.verdicts(changes)
    assert VIOLATED not in {state for state, _ in found}, found
    assert parameters.jitter_us or UNPROVEN not in {state for state, _ in found}, found


def faster(parameters, factor):
    return replace(parameters, rate_bits_per_s=round(parameters.rate_bits_per_s * factor))


@pytest.mark.parametrize("reorder", [False, True])
def test_wrong_jitter_is_detected(reorder):
    asked, sent = LinkParameters(delay_us=30_000, jitter_us=5_000, reorder=reorder), traffic(8, 6)
    off = [{"delay_us": us} for us in (29_000, 31_000)] + [{"jitter_us": us} for us in (0, 3_000, 7_000)]
    for changed in ({}, *off):
        captured = emulate([Change(0, replace(asked, **changed))], sent)
        assert states(captured, [Change(0, asked)]) == [VIOLATED if changed else PROVEN], changed


def test_correlated_jitter_is_distinguished_from_jitter_that_is_not():
    alone = LinkParameters(delay_us=30_000, jitter_us=5_000)
    alike = replace(alone, jitter_correlation=0.75)
    sent = traffic(8, 6)
    for did, asked, expected in (
        (alike, alike, PROVEN),
        (alone, alone, PROVEN),
        (alone, alike, VIOLATED),
        (alike, alone, VIOLATED),
    ):
        captured = emulate([Change(0, did)], sent, 1)
        assert states(captured, [Change(0, asked)]) == [expected], (did, asked)


def test_configured_bursts_of_loss_are_proven():
    bursts = LinkParameters(delay_us=5_000, loss=0.02, loss_burst_packets=12)
    sent = traffic(20, 1.5, sizes=(100, 1448))
    assert states(emulate([Change(0, bursts)], sent), [Change(0, bursts)]) == [PROVEN]
    too_many = replace(bursts, loss=0.1)
    assert states(emulate([Change(0, too_many)], sent), [Change(0, bursts)]) == [VIOLATED]


def test_a_change_that_was_not_applied_is_detected():
    asked = [Change(0, NARROW), Change(4 * S, replace(NARROW, rate_bits_per_s=5_000_000))]
    captured = emulate(asked[:1], traffic(8, 15))
    assert states(captured, asked)[1] == VIOLATED


def test_a_path_mtu_black_hole_loses_by_size_and_nothing_else():
    hole = replace(NARROW, mtu_bytes=1000)
    changes = [Change(0, NARROW), Change(3 * S, hole), Change(5 * S, NARROW)]
    sent = traffic(7, 15)
    captured = emulate(changes, sent)
    assert states(captured, changes) == [PROVEN] * 3
    before, during, after = (did.lost for did in captured.measured(changes))
    assert (before.size, after.size) == (0, 0)
    assert during.size > 500
    assert during.chance == 0
    leaking = emulate(changes[:1], sent)
    state, reason = leaking.verdicts(changes)[1]
    assert (state, "larger than the MTU came through" in reason) == (VIOLATED, True)


@pytest.mark.parametrize("off_ms", [-8, 3])
def test_drops_of_a_full_queue_at_a_rate_change_are_not_random_losses(off_ms):
    wide = LinkParameters(delay_us=150_000, rate_bits_per_s=2_000_000, queue_packets=40)
    narrow = faster(wide, 0.5)
    sent = traffic(6, 2, sizes=(0, 0, 20, 1448))
    captured = emulate([Change(0, wide), Change(3 * S + off_ms * MS, narrow)], sent)
    assert captured.link_direction.dropped_queue > 500
    changes = [Change(0, wide), Change(3 * S, narrow)]
    found = captured.measured(changes)
    assert [did.lost.chance for did in found] == [0, 0]
    assert [did.crowded for did in found] == [0, 0]


def test_false_violations_by_loss_are_rare():
    parameters, sent = LinkParameters(loss=0.005), [(S + n * MS, 100) for n in range(1_000)]
    alone = [Change(0, parameters)]
    assert [states(emulate(alone, sent, seed), alone) for seed in range(30)] == [[PROVEN]] * 30


def test_few_packets_prove_nothing():
    captured = emulate([Change(0, NARROW)], [(S, 100), (2 * S, 100)])
    assert captured.verdicts([Change(0, NARROW)]) == [(UNPROVEN, "2 packets are too few to tell")]
