"""Estimated clocks are within their error bounds, for any clock and any delays of packets."""

from dataclasses import asdict
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.capture.clocks.bounds import Exchange, Sightings
from analysis.capture.clocks.estimate import CONTROL, NOTHING, PACKETS, ControlReading, Estimate, estimate
from analysis.capture.clocks.rate_segments import WANDER
from analysis.capture.clocks.run_clocks import ClockChange, changes
from analysis.capture.clocks.wire import MachineExchange
from tests.analysis.capture.clocks.synthetic import MS, US, ZERO, Offset, S, Times, Way, met, right, shown

SECONDS = 16
MIDDLE = SECONDS / 2
SYMMETRIC = Way(least=(40 * US, 40 * US), jitter=(30 * US, 60 * US))
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def found(far: Offset, way: Way = SYMMETRIC, *, seed: int = 0) -> Estimate:
    """Estimate the clock of a machine that exchanges packets with a machine with a correct clock."""
    return estimate(["a", "b"], [met(right, far, way=way, seed=seed, seconds=SECONDS)], {})["b"]


def errors_and_bars(one: Estimate, truth: Offset, reference: Offset = right) -> tuple[Floats, Floats]:
    """Return the error of the estimate at many times of the run, and its error bounds."""
    t_ns = np.linspace(0, SECONDS * S, 5_000).astype(np.int64)
    own = shown(truth, t_ns)
    low, high = one.clock.bounds(own)
    return np.abs(one.clock.corrected(own) - shown(reference, t_ns)).astype(float), (high - low) / 2


def stepping(at_s: float, by_ns: float, drift: float = 0.0) -> Offset:
    """Return a clock that drifts and is set once."""
    return lambda t_ns: drift * t_ns + np.where(t_ns < at_s * S, 0.0, by_ns)


CLOCKS: dict[str, Offset] = {
    "a constant offset": lambda t_ns: 0 * t_ns + 3_000_017 * US,
    "a drift of 50 ppm": lambda t_ns: 50e-6 * t_ns - 2 * MS,
    "a step ahead": stepping(MIDDLE, 5 * MS),
    "a step back": stepping(MIDDLE, -200 * MS),
    "a small step": stepping(MIDDLE, 20 * US),
    "a step and a drift": stepping(6, 123_456, 50e-6),
    "a new rate": lambda t_ns: 5e-6 * t_ns + np.where(t_ns < MIDDLE * S, 0, 40e-6 * (t_ns - MIDDLE * S)),
    "a slow wander": lambda t_ns: WANDER * 2 * S * np.sin(t_ns / (4 * S)),
    "a fast wander": lambda t_ns: 50e-6 * 3 * S * np.sin(t_ns / (3 * S)),
}


@cache
def of_clock(name: str) -> Estimate:
    return found(CLOCKS[name])


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_error_of_a_clock_is_within_its_bound_of_half_the_round_trip(clock: str) -> None:
    """With symmetric delays its error is a few microseconds."""
    error, bar = errors_and_bars(of_clock(clock), CLOCKS[clock])
    assert (error <= bar + 1).all()
    assert np.quantile(error, 0.9) < 10 * US
    if clock != "a fast wander":
        assert np.median(bar) < 50 * US
        assert np.quantile(bar, 0.9) < 60 * US


@settings(max_examples=8)
@given(
    offset_ms=st.integers(-(10**7), 10**7),
    drift_ppm=st.floats(-100, 100),
    step_us=st.one_of(st.just(0), st.integers(-500, 500), st.integers(-(10**6), 10**6)),
    step_s=st.floats(1, SECONDS - 1),
    least_us=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    jitter_us=st.tuples(st.integers(1, 500), st.integers(1, 500)),
    packets_per_s=st.sampled_from([20, 100, 300]),
    seed=st.integers(0, 1000),
)
@pytest.mark.slow
def test_the_true_offset_is_within_the_bounds_for_any_clock_and_packets(
    offset_ms, drift_ppm, step_us, step_s, least_us, jitter_us, packets_per_s, seed
):
    def truth(t_ns: Times) -> Times:
        return offset_ms * MS + drift_ppm * 1e-6 * t_ns + np.where(t_ns < step_s * S, 0, step_us * US)

    way = Way((least_us[0] * US, least_us[1] * US), (jitter_us[0] * US, jitter_us[1] * US), packets_per_s)
    error, bar = errors_and_bars(found(truth, way, seed=seed), truth)
    assert (error <= bar + 1).all()


def test_a_step_is_reported_with_its_size_and_its_time() -> None:
    one = found(stepping(MIDDLE, 5 * MS, 50e-6))
    (change,) = told(one)
    assert change.step_ns == pytest.approx(5 * MS, abs=20 * US)
    assert (change.t_ns - ZERO) / S == pytest.approx(MIDDLE, abs=0.1)


def test_a_rate_change_is_reported_as_such_and_not_as_a_step() -> None:
    (change,) = told(of_clock("a new rate"))
    assert change.step_ns is None
    assert (change.before_ppm, change.after_ppm) == (pytest.approx(5, abs=1), pytest.approx(45, abs=1))


@pytest.mark.parametrize("clock", ["a drift of 50 ppm", "a slow wander"])
def test_a_steady_clock_has_no_reported_changes(clock: str) -> None:
    assert told(of_clock(clock)) == []


def told(one: Estimate) -> list[ClockChange]:
    stretches = [asdict(each) for each in one.stretches]
    return changes({"stretches": stretches})


def test_error_bounds_add_over_two_hops_and_contain_the_true_offset() -> None:
    middle, last = CLOCKS["a drift of 50 ppm"], stepping(6.5, 3 * MS, -30e-6)
    mets = [
        met(right, middle, way=SYMMETRIC, seconds=SECONDS),
        met(middle, last, way=SYMMETRIC, names="bc", seconds=SECONDS, seed=1),
    ]
    known = estimate(["a", "b", "c"], mets, {})
    assert known["c"].way == ("a", "b", "c")
    error, bar = errors_and_bars(known["c"], last)
    assert (error <= bar + 1).all()
    _, first_bar = errors_and_bars(known["b"], middle)
    assert np.median(bar) == pytest.approx(2 * np.median(first_bar), rel=0.2)


def test_a_link_is_used_from_whichever_end_is_known() -> None:
    truth = CLOCKS["a drift of 50 ppm"]
    one = estimate(["b", "a"], [met(truth, right, way=SYMMETRIC, seconds=SECONDS)], {})["a"]
    t_ns = np.array([3 * S, (SECONDS - 3) * S], np.int64)
    corrected = one.clock.corrected(shown(truth, t_ns))
    assert np.abs(corrected - shown(right, t_ns)).max() < 60 * US


@pytest.mark.slow
def test_the_path_with_the_smaller_error_counts() -> None:
    slow = Way(least=(5 * MS, 5 * MS))
    truth = CLOCKS["a drift of 50 ppm"]
    mets = [met(right, truth, way=way, seconds=SECONDS) for way in (slow, SYMMETRIC, slow)]
    _, bar = errors_and_bars(estimate(["a", "b"], mets, {})["b"], truth)
    assert np.median(bar) < 100 * US


def one_way(whole: MachineExchange) -> MachineExchange:
    """Return the exchange without the packets of the reverse direction."""
    nothing = Sightings(*(np.zeros(0, np.int64) for _ in range(3)))
    return MachineExchange(
        whole.link, whole.near, whole.far, Exchange(whole.exchange.left, nothing, whole.exchange.seen_left, 0)
    )


READINGS = {
    "a": ControlReading(ZERO, 7 * S, 100 * US),
    "b": ControlReading(ZERO - 2 * MS, 7 * S - 2 * MS + 50 * US, 200 * US),
}


@pytest.mark.parametrize("captured", [False, True])
def test_without_packets_in_both_directions_the_control_reading_is_used(captured: bool) -> None:
    truth = CLOCKS["a drift of 50 ppm"]
    mets = [one_way(met(right, truth, way=SYMMETRIC, seconds=SECONDS))] if captured else []
    one = estimate(["a", "b"], mets, READINGS)["b"]
    assert one.source == CONTROL
    error, bar = errors_and_bars(one, truth)
    assert (error <= bar + 1).all()
    assert bar[0] == pytest.approx(300 * US, rel=0.6)
    assert bar[-1] > bar[0]


def test_a_clock_without_observations_is_reported_as_unknown() -> None:
    one = estimate(["a", "b"], [], {})["b"]
    assert one.source == NOTHING
    assert one.clock.error_bounds_ns(np.array([ZERO])).min() >= 3_600 * S


def test_a_long_declared_delay_does_not_widen_the_error_bound() -> None:
    truth = CLOCKS["a constant offset"]
    way = Way(least=(15 * MS, 40 * MS))
    seen = met(right, truth, way=way, seconds=SECONDS)
    known = MachineExchange(seen.link, seen.near, seen.far, seen.exchange, least_ns=(15 * MS, 40 * MS))
    error, bar = errors_and_bars(estimate(["a", "b"], [known], {})["b"], truth)
    assert np.median(bar) < 20 * US
    assert (error <= bar + 1).all()


def test_a_declared_delay_that_packets_contradict_is_not_used() -> None:
    truth = CLOCKS["a constant offset"]
    seen = met(right, truth, way=SYMMETRIC, seconds=SECONDS)
    wrong = MachineExchange(seen.link, seen.near, seen.far, seen.exchange, least_ns=(15 * MS, 15 * MS))
    one = estimate(["a", "b"], [wrong], {})["b"]
    assert not one.least_used
    assert one.source == PACKETS
    error, bar = errors_and_bars(one, truth)
    assert (error <= bar + 1).all()
