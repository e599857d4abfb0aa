"""Expectations: parsing, and evaluation on summaries."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.expectations import OPERATORS, Expectation
from experiments.records.summary import path_problem

SUMMARY = {
    "verdict": "passed",
    "fidelity": {"valid": True, "links": [{"link": "r2-r3", "delay_p50_ms": 15.1}], "cpu_max": math.nan},
    "events": {"lost": 0, "published": 100, "delivered": None},
    "recovery": {"cut": {"switch_s": 0.98, "settled_s": None}},
}


def held(text: str) -> bool:
    return Expectation.parse(text).evaluate(SUMMARY)["held"]


HOLD = (
    "events.lost == 0",
    "events.lost <= 0.0",
    "events.published != 99",
    "events.published > 99",
    "recovery.cut.switch_s <= 2",
    "recovery.cut.switch_s < 9.9e-1",
    "recovery.cut.switch_s>=.5",
    "fidelity.valid == true",
    "fidelity.links.r2-r3.delay_p50_ms <= 15.3",
    "verdict == passed",
    "verdict != failed",
)
DO_NOT = (
    "events.lost > 0",
    "recovery.cut.switch_s <= 0.9",
    "fidelity.valid == false",
    "verdict == failed",
    "fidelity.links.r0-r1.delay_p50_ms <= 15.3",
    "events.lost == false",
    "fidelity.valid != 7",
    "verdict != 7",
)


def test_expectations_compare_only_values_of_the_same_kind():
    assert [text for text in HOLD if not held(text)] == [text for text in DO_NOT if held(text)] == []


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(
    "path", ["events.delivered", "recovery.cut.settled_s", "nothing.here", "events", "fidelity.cpu_max"]
)
def test_expectations_on_unmeasured_figures_never_hold(path, operator):
    assert not held(f"{path} {operator} 0")


def test_an_evaluated_expectation_has_its_text_and_the_measured_value():
    assert Expectation.parse("recovery.cut.switch_s   <=  2").evaluate(SUMMARY) == {
        "text": "recovery.cut.switch_s <= 2",
        "value": 0.98,
        "held": True,
    }
    assert Expectation.parse("events.delivered == 1").evaluate(SUMMARY)["value"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("events.lost = 0", "is not a comparison"),
        ("events..lost == 0", "is not a comparison"),
        (".lost == 0", "is not a comparison"),
        ("events.lost == 0 and more", "is not a comparison"),
        ("x" * 300 + " == 0", "is not a comparison"),
        ("recovery.cut.switch_s <= 2s", "2s is neither a number nor a word; its unit is in the path"),
        ("fidelity.valid >= true", "true has no order"),
    ],
)
def test_invalid_expectations_are_refused(text, said):
    with pytest.raises(ValueError) as error:  # noqa: PT011  what it says is compared below
        Expectation.parse(text)
    assert said in str(error.value)


@given(
    st.from_regex(r"[a-z]+(\.[a-z_-]+){0,3}", fullmatch=True),
    st.sampled_from(list(OPERATORS)),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**17), 10**17),
)
def test_the_text_of_an_expectation_reads_back_as_the_same(path, operator, value):
    expectation = Expectation(path, operator, value)
    assert Expectation.parse(expectation.text) == expectation


@given(st.text(max_size=80))
def test_arbitrary_text_is_parsed_or_refused(text):
    with contextlib.suppress(ValueError):
        Expectation.parse(text).evaluate(SUMMARY)


@pytest.mark.parametrize(
    "path",
    [
        "verdict",
        "events.lost",
        "recovery.cut.switch_s",
        "fidelity.links.r2-r3.loss",
        "latency.p99_ms",
        "agreement.held",
        "streams.r1.lost",
        "streams.r0.1.lost",
    ],
)
def test_paths_into_the_summary_are_known(path):
    assert path_problem(path, ["cut"]) is None


@pytest.mark.parametrize(
    "path",
    [
        "verdict.x",
        "events",
        "events.lost.x",
        "recovery",
        "recovery.cut",
        "seed.x",
        "streams.r1",
        "streams.r1.loss",
    ],
)
def test_unknown_paths_are_refused(path):
    assert path_problem(path, ["cut"])


def test_a_stream_s_name_may_have_dots():
    expectation = Expectation.parse("streams.r0.1.lost == 0")
    assert expectation.evaluate({"streams": {"r0.0": {"lost": 0}, "r0.1": {"lost": 3}}})["value"] == 3
    assert not expectation.evaluate({"streams": {"r0": {"lost": 0}}})["held"]
