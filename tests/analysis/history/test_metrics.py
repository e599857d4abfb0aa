"""Headline numbers: the measured figures, with unit and better direction."""

import pytest

from analysis.history import Metric, headline
from analysis.history.metrics import unit_of
from experiments.records.summary import FAULT_FIELDS, METRICS, SECTIONS

SUMMARY = {
    "throughput": {"events_per_s": 79_952.9, "bytes_per_s": None},
    "latency": {"p50_ms": 49.5, "p95_ms": float("nan"), "error_ms": 0.1},
    "events": {"published": 100, "lost": 0, "unverified": 3},
    "recovery": {"cut": {"switch_s": 0.6, "backlog_events": 14_011, "detect_s": None}, "odd": None},
    "fidelity": {"valid": True, "cpu_max": 0.8},
    "agreement": {"held": True},
}


def test_measured_figures_are_named_by_path() -> None:
    assert headline(SUMMARY) == [
        Metric("throughput.events_per_s", 79_952.9, "events/s", "higher"),
        Metric("latency.p50_ms", 49.5, "ms", "lower"),
        Metric("events.published", 100.0, "events", ""),
        Metric("events.lost", 0.0, "events", "lower"),
        Metric("fidelity.cpu_max", 0.8, "", ""),
        Metric("recovery.cut.switch_s", 0.6, "s", "lower"),
        Metric("recovery.cut.backlog_events", 14_011.0, "events", "lower"),
    ]


def test_a_systems_own_measures_may_have_any_name() -> None:
    measures = {"queue": {"wait_ms": {"count": 3, "max": 2.5}, "events": {"mean": 4.0}}, "odd": 3}
    assert headline({"measures": measures}) == [
        Metric("measures.queue.wait_ms.count", 3.0, "number", ""),
        Metric("measures.queue.wait_ms.max", 2.5, "ms", ""),
        Metric("measures.queue.events.mean", 4.0, "number", ""),
    ]
    assert unit_of("measures.queue.wait_ms.max") == "ms"


@pytest.mark.parametrize("summary", [{}, {"throughput": None, "recovery": None}, {"events": {"lost": True}}])
def test_unmeasured_figures_are_left_out(summary: dict[str, object]) -> None:
    assert headline(summary) == []


def test_every_number_that_an_expectation_may_ask_for_is_followed() -> None:
    seldom = {"unverified"}  # counts what could not be checked
    seldom |= {name for name, figure in METRICS["latency"].items() if not figure.followed}  # parts of a run
    numbers = {f"recovery.f.{name}": 1.0 for name in FAULT_FIELDS}
    for section in ("events", "throughput", "latency"):
        numbers |= {f"{section}.{name}": 1.0 for name in SECTIONS[section] or () if name not in seldom}
    summary: dict[str, dict[str, object]] = {"recovery": {"f": {}}}
    for path, value in numbers.items():
        section, *_, name = path.split(".")
        (summary[section]["f"] if section == "recovery" else summary.setdefault(section, {}))[name] = value
    assert {metric.name for metric in headline(summary)} == set(numbers)


@pytest.mark.parametrize("metric", headline(SUMMARY), ids=lambda metric: metric.name)
def test_the_unit_follows_from_the_name(metric: Metric) -> None:
    assert unit_of(metric.name) == metric.unit
