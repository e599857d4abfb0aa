"""Overlapping faults have the figures of `delivery_reference`; `fault_pairs` draws and compares more."""

import pytest

from tests.analysis.timelines.recovering.fault_pairs import SPANS, drawn, outcome_of

SAMPLE = (0, 1, 3, 4, 6, 10)


@pytest.mark.slow
@pytest.mark.parametrize("number", SAMPLE)
def test_each_fault_of_a_drawn_pair_has_its_own_figures(number: int):
    outcome = outcome_of(number, seed=1)
    assert outcome.became in ("agreed", "refused"), (outcome.faults, outcome.details)


def test_the_sample_has_pairs_of_every_span():
    assert {drawn(number, seed=1)[1] for number in SAMPLE} == set(SPANS)
