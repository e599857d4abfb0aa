"""Overlapping faults have the figures of `delivery_reference`."""

import pytest

from tests.analysis.timelines.recovering.fault_pairs import SPANS, compared, drawn

SAMPLE = (0, 1, 3, 4, 10, 32)


@pytest.mark.slow
@pytest.mark.parametrize("number", SAMPLE)
def test_each_fault_of_a_drawn_pair_has_its_own_figures(number: int):
    assert compared(number) == [], drawn(number)


def test_the_sample_has_pairs_of_every_span():
    assert {drawn(number)[0] for number in SAMPLE} == set(SPANS)
