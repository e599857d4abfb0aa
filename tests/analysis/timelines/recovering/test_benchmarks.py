"""Recovery by the methods of RFC 6412, on cases computed by hand."""

import numpy as np
import pytest

from analysis.arrays import NEVER
from analysis.timelines.recovering.recovery_times import PairPieces, benchmark
from tests.analysis.timelines.world import MS, S

FAULT, END, EVERY, LATENCY = 10 * S, 30 * S, 50 * MS, 40 * MS


def stream(late=lambda t_ns: 0):
    """Return a batch of 10 events every 50 ms; `late` gives the additional delay, or NEVER."""
    published = np.arange(0, END, EVERY)
    extra = [late(t) for t in published.tolist()]
    came = [NEVER if e == NEVER else t + LATENCY + e for t, e in zip(published.tolist(), extra, strict=True)]
    return PairPieces(
        np.full(len(published), 10), published, np.array(came), np.zeros(len(published), np.int64)
    )


def kept_until(end_ns, start_ns=FAULT):
    """Delay events published in this period until its end."""
    return lambda t: end_ns - t if start_ns <= t < end_ns else 0


def seconds(found):
    rate, loss = found.rate_derived_ns, found.loss_derived_ns
    return None if rate is None else rate / S, None if loss is None else loss / S


def test_both_methods_agree_on_a_route_that_was_lost_once():
    found = benchmark(stream(kept_until(FAULT + 2 * S)), FAULT, until_ns=END)
    assert seconds(found) == (pytest.approx(2.0, abs=0.2), pytest.approx(2.0, abs=0.1))
    assert found.impaired == 2 * S // EVERY * 10
    assert found.connectivity_lost_ns == pytest.approx(2 * S, abs=2 * EVERY)


def test_events_that_never_came_are_impaired_as_much_as_late_ones():
    gone = benchmark(stream(lambda t: NEVER if FAULT <= t < FAULT + 2 * S else 0), FAULT, until_ns=END)
    late = benchmark(stream(kept_until(FAULT + 2 * S)), FAULT, until_ns=END)
    assert (gone.impaired, gone.rate_derived_ns) == (late.impaired, late.rate_derived_ns)


def test_a_route_that_is_lost_again_is_longer_by_rates_than_by_losses():
    first, second = kept_until(FAULT + S), kept_until(FAULT + 3 * S, FAULT + 2 * S)
    found = benchmark(stream(lambda t: first(t) + second(t)), FAULT, until_ns=END)
    assert seconds(found) == (pytest.approx(3.0, abs=0.2), pytest.approx(2.0, abs=0.1))
    assert found.connectivity_lost_ns == pytest.approx(S, abs=2 * EVERY)


def test_a_route_that_carries_half_its_load_has_not_converged():
    half = benchmark(
        stream(lambda t: NEVER if FAULT <= t < FAULT + 4 * S and t // EVERY % 2 else 0), FAULT, until_ns=END
    )
    assert seconds(half) == (pytest.approx(4.0, abs=0.2), pytest.approx(2.0, abs=0.1))


def test_a_recovery_that_was_not_sustained_is_none():
    found = benchmark(stream(kept_until(FAULT + 2 * S)), FAULT, until_ns=FAULT + 3 * S)
    assert found.rate_derived_ns is None
    assert (
        benchmark(stream(lambda t: NEVER if t >= FAULT else 0), FAULT, until_ns=END).rate_derived_ns is None
    )


def test_an_undisturbed_route_converges_at_once():
    found = benchmark(stream(), FAULT, until_ns=END)
    assert seconds(found) == (0.0, 0.0)
    assert found.impaired == 0


def test_without_a_baseline_benchmarks_are_unknown():
    assert benchmark(stream(lambda t: NEVER), FAULT, until_ns=END).impaired is None
