"""Every number has a unit and a sensible number of digits; missing values are shown as not measured."""

import math
from collections.abc import Callable

import pytest

from analysis.pages.report import formatting as f


def spaced(text: str) -> str:
    """Return the text with plain spaces."""
    return text.replace("\u00a0", " ").replace("\u202f", " ")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (f.number(19_600), "19 600"),
        (f.number(0.123456), "0.123"),
        (f.with_unit(15.0, "ms"), "15 ms"),
        (f.scaled(1_250_000_000, "B/s"), "1.25 GB/s"),
        (f.scaled(999_999, "B/s"), "1 MB/s"),
        (f.large(38_412_345, "deliveries"), "38.4 million deliveries"),
        (f.large(53_886, "events"), "53 886 events"),
        (f.large(79_987.2, "events/s"), "79 990 events/s"),
        (f.seconds(0.0123), "0.012 s"),
        (f.seconds(61.26), "61.3 s"),
        (f.precise_seconds(19.0021), "19.002 s"),
        (f.percent(0), "0 %"),
        (f.percent(0.0101), "1 %"),
        (f.percent(0.000001), "<0.01 %"),
        (f.count_of(1, "proxy"), "1 proxy"),
        (f.count_of(2, "proxy"), "2 proxies"),
        (f.count_of(3, "process"), "3 processes"),
    ],
)
def test_quantities_are_formatted_with_digits_and_units(said: str, wanted: str) -> None:
    assert spaced(said) == wanted


@pytest.mark.parametrize(
    "show",
    [
        f.number,
        f.seconds,
        f.precise_seconds,
        f.percent,
        lambda v: f.with_unit(v, "ms"),
        lambda v: f.scaled(v, "B/s"),
        lambda v: f.large(v, "events"),
    ],
)
@pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
def test_unmeasured_values_are_never_shown_as_numbers(
    show: Callable[[float | None], str], nothing: float | None
) -> None:
    assert show(nothing) == "not measured"
