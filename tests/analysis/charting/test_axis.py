"""Axes: they hold what they are made for, and their ticks are round numbers."""

import math

import pytest

from analysis.charting.axis import linear, logarithmic, spanning
from analysis.charting.drawing import short

NEARLY_ALIKE = (
    [793.45, 793.52],
    [793.5, 793.5000001],
    [79_998.2, 79_998.6],
    [999.9, 1000.1],
    [0.0021, 0.002101],
)
VALUES = (
    *NEARLY_ALIKE,
    [18.0, 24.7],
    [3.0],
    [0.0],
    [],
    [1, 2, 3],
    [79_900.0, 80_100.0],
    [0.002, 0.0031],
    [-4.0, 9.0],
    [1e9, 3e9],
)


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("from_zero", [True, False])
def test_a_linear_axis_holds_its_values_and_has_ticks(values: list[float], from_zero: bool) -> None:
    axis = linear(values, from_zero=from_zero)
    assert all(axis.low <= value <= axis.high for value in values)
    assert len(axis.ticks) >= 2
    assert all(axis.low - 1e-9 <= tick <= axis.high + 1e-9 for tick in axis.ticks)


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("ticks", [2, 3, 4])
def test_an_axis_that_does_not_start_at_zero_has_ticks_that_differ_as_written(
    values: list[float], ticks: int
) -> None:
    written = [short(tick) for tick in linear(values, from_zero=False, ticks=ticks).ticks]
    assert len(written) >= 2
    assert len(set(written)) == len(written)


def test_an_axis_from_zero_begins_there() -> None:
    assert linear([79_900.0, 80_100.0]).low == 0
    assert linear([79_900.0, 80_100.0], from_zero=False).low > 79_000


def test_values_stand_where_they_belong() -> None:
    axis = linear([0.0, 10.0])
    assert (axis.at(0), axis.at(5), axis.at(10), axis.at(99)) == (0, 0.5, 1, 1)


def test_a_logarithmic_axis_gives_each_decade_the_same_room() -> None:
    axis = logarithmic([1.0, 1000.0])
    assert (axis.low, axis.high) == (1, 1000)
    assert axis.at(10) == pytest.approx(1 / 3)
    assert axis.at(0) == 0  # cannot be shown, and must not fail


def test_a_logarithmic_axis_over_many_decades_has_ticks_at_decades_alone() -> None:
    assert all(math.log10(tick).is_integer() for tick in logarithmic([1.0, 1e6]).ticks)


def test_a_spanning_axis_goes_no_further_than_asked() -> None:
    axis = spanning(0.0, 60.2)
    assert (axis.low, axis.high) == (0.0, 60.2)
    assert axis.ticks[-1] == 60
