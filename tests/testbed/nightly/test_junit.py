"""JUnit XML that CI systems can read."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

from experiments.campaigns.campaign import FailureKind, RunState
from experiments.campaigns.nights import NightDirectory, NightRecord
from testbed.nightly.junit import junit_xml
from tests.campaigns import night_record, night_run

BUSY = {"failure": FailureKind.FIDELITY, "problem": "busy"}
DONE = {"state": RunState.DONE, "verdict": "passed", "duration_s": 12.5}
PASSED = night_run(**DONE)
RUNS = (
    PASSED,
    night_run(
        repetition=1,
        **DONE | {"verdict": "failed", "failure": FailureKind.EXPECTATION, "problem": "a < b & \x00 ended"},
    ),
    night_run(repetition=2, state=RunState.FAILED, failure=FailureKind.HARNESS, problem="no disk"),
    night_run(repetition=3, **DONE | {"verdict": "invalid"} | BUSY, allow_failure=True),
    night_run(repetition=4, state=RunState.SKIPPED, problem="no time left"),
    night_run(repetition=5),
)
RECORD = night_record(*RUNS, spent_s=99.5)
DIRECTORY = NightDirectory.for_night(Path("runs"), date(2026, 11, 21), "quick")


def suite(record: NightRecord) -> ElementTree.Element:
    return ElementTree.fromstring(junit_xml(DIRECTORY, record).encode()).find("testsuite")


def test_each_ended_run_is_a_case_with_the_kind_of_its_failure():
    found = suite(RECORD)
    assert found.attrib == {
        "name": "quick 2026-11-21",
        "tests": "6",
        "failures": "1",
        "errors": "1",
        "skipped": "2",
        "time": "99.500",
    }
    said = [
        [(child.tag, child.get("type"), child.text) for child in case if child.tag != "properties"]
        for case in found
    ]
    assert said == [
        [],
        [("failure", "expectation", "a < b & \ufffd ended")],
        [("error", "harness", "no disk")],
        [("skipped", "fidelity", "allowed to fail: busy")],
        [("skipped", None, "no time left")],
        [],
    ]
    assert (found[0].get("classname"), found[0].get("name"), found[0].get("time")) == (
        "quick.cut",
        "cut r0",
        "12.500",
    )


def test_a_regression_is_a_separate_failure():
    [*_, regressions] = suite(replace(RECORD, findings=("latency rose", "throughput fell")))
    failure = regressions.find("failure")
    assert (regressions.get("name"), failure.get("type")) == ("regressions", "regression")
    assert (failure.get("message"), failure.text) == ("latency rose", "latency rose\nthroughput fell")


def test_a_night_that_was_not_checked_is_an_error():
    found = suite(replace(RECORD, unchecked="the history is damaged"))
    assert found.get("errors") == "2"
    assert found[-1].find("error").text == "not checked: the history is damaged"
