"""Claims of a run, compared with repeats of the run: they hold, differ, or are undecided."""

import numpy as np
import pytest

from analysis.claims import SummaryClaim, claims
from analysis.reproduction import ClaimVerdict, JudgedClaim, is_judged, judge

HOLDS, DIFFERS, UNDECIDED = ClaimVerdict.HOLDS, ClaimVerdict.DIFFERS, ClaimVerdict.UNDECIDED


def one(value, repeats, *, figure="latency.p50_ms", bar=None, **options) -> JudgedClaim:
    section, name = figure.split(".")
    summaries = [{section: {name: each}} for each in repeats]
    [judged] = judge([SummaryClaim(figure, value, bar, 0.0)], summaries, **options)
    return judged


@pytest.mark.parametrize(
    ("value", "repeats", "verdict"),
    [
        (20.0, [19.0, 20.5, 21.0, 20.0, 19.5], HOLDS),
        (40.0, [19.0, 20.5, 21.0, 20.0, 19.5], DIFFERS),
        (10.0, [19.0, 20.5, 21.0, 20.0, 19.5], DIFFERS),
        (21.0, [20.0] * 5, HOLDS),  # off by less than a tenth
        (23.0, [20.0] * 5, DIFFERS),
        (23.0, [17.0, 27.0, 20.0, 18.0, 24.0], HOLDS),  # they are no nearer to each other
        (20.0, [20.0, 20.0], UNDECIDED),
        (20.0, [20.0, None, 20.0, None, None], UNDECIDED),
        (20.0, [], UNDECIDED),
        (None, [20.0, 21.0, 20.0], DIFFERS),
        (None, [None, None, None], HOLDS),
    ],
)
def test_a_figure_is_compared_with_the_interval_of_one_more_run(value, repeats, verdict):
    assert one(value, repeats).verdict is verdict


def test_a_count_of_0_in_all_repeats_has_no_margin():
    assert one(1, [0] * 5, figure="events.lost").verdict is DIFFERS
    assert one(0, [0] * 5, figure="events.lost").verdict is HOLDS


def test_differences_below_the_clock_resolution_do_not_count():
    assert one(0.01, [0.0] * 5, figure="recovery.switch_s").verdict is HOLDS
    assert one(0.5, [0.0] * 5, figure="recovery.switch_s").verdict is DIFFERS


def test_a_claims_own_error_counts():
    assert one(30.0, [20.0] * 5).verdict is DIFFERS
    assert one(30.0, [20.0] * 5, bar=9.0).verdict is HOLDS


def test_the_margin_of_a_figure_can_be_set():
    assert one(23.0, [20.0] * 5, within=0.2).verdict is HOLDS
    assert one(20.5, [20.0] * 5, within=0.0).verdict is DIFFERS


def test_texts_hold_if_any_repeat_has_the_same():
    assert one("passed", ["failed", "passed", "failed"], figure="a.verdict").verdict is HOLDS
    assert one("passed", ["failed"] * 3, figure="a.verdict").verdict is DIFFERS
    assert one(True, [1, 1, 1], figure="a.held").verdict is DIFFERS
    assert one("passed", ["passed"] * 2, figure="a.verdict").verdict is UNDECIDED


def test_in_virtual_time_nothing_may_differ():
    assert one(20.0, [20.0], exact=True).verdict is HOLDS
    assert one(20.0, [20.001], exact=True).verdict is DIFFERS
    assert one(20.0, [20.0, 20.001], exact=True).here == 20.001
    assert one(20.0, [], exact=True).verdict is UNDECIDED


def test_a_run_equal_to_its_repeats_rarely_differs():
    rng = np.random.default_rng(1)
    told = 0
    for _ in range(200):
        first, *others = (
            {"m": {str(k): v for k, v in enumerate(rng.lognormal(3, 0.3, 40))}} for _ in range(6)
        )
        told += any(each.verdict is DIFFERS for each in judge(claims(first), others))
    assert told <= 20  # 10 are expected by chance


@pytest.mark.parametrize(
    ("figure", "judged"),
    [
        ("run", False),
        ("fidelity.cpu_max", False),
        ("fidelity.notes.length", False),
        ("fidelity.reasons.0", False),
        ("problems.0", False),
        ("fidelity.links.r0-r1.direction", False),
        ("fidelity.links.r0-r1.from_s", False),
        ("fidelity.links.r0-r1.delay_p50_ms", True),
        ("verdict", True),
        ("fidelity.valid", True),
        ("events.lost", True),
    ],
)
def test_figures_of_one_run_only_are_not_judged(figure, judged):
    assert is_judged(figure) is judged
