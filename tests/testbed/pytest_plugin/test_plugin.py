"""The plugin as users use it: tests in a separate folder, run by a separate pytest.

One session in virtual time covers everything that needs a run; the rest uses a pytest within this one.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from testbed.pytest_plugin.fixture import CALL
from tests.testbed.runner.live import PROJECT, write_experiment

pytest_plugins = ["pytester"]

QUICK = "on: simulator\ncaptures: none\nexpect: [events.lost == 0]\n"
CUT = "faults: [{name: cut, at: 500ms, cut: [r0, r1], for: 300ms}]\n"
TESTS = """
import pytest

EXPERIMENT = "../experiments/tiny.yaml"

@pytest.fixture(scope="module")
def slow_link(cutset):
    return cutset.run(EXPERIMENT, repeat=2)

def test_holds(cutset):
    run = cutset.run("../experiments/tiny.yaml", repeat=2)
    assert max(run["recovery.cut.catch_up_s"]) < 2
    assert run["events.lost"] == (0, 0)
    assert [made.seed for made in run.runs] == [1, 2]

def test_does_not_hold(slow_link):
    assert max(slow_link["latency.p50_ms"]) < 0.5

def test_different_requests_for_the_same_run(cutset, slow_link):
    again = cutset.run(EXPERIMENT, set={"workload.rate": "2000/s"}, on="simulator", seed=1, repeat=2)
    assert again.runs == slow_link.runs
    assert cutset.run(EXPERIMENT, seed=7).runs[0].seed == 7

def test_expectation(cutset):
    cutset.run(EXPERIMENT, set={"expect": ["events.lost == 1"]})

def test_allowed(cutset):
    run = cutset.run(EXPERIMENT, set={"expect": ["events.lost == 1"]}, allow=["failed"])
    assert run["verdict"] == ("failed",)

def test_unknown(cutset):
    cutset.run("tinny")

@pytest.mark.parametrize("topology", ["../experiments/two-regions.yaml", "three-regions"])
def test_everywhere(cutset, topology):
    run = cutset.run(EXPERIMENT, set={"faults": []}, topology=topology)
    there = run.runs[0].record["topology"]
    assert len(there["regions"]) == {"../experiments/two-regions.yaml": 2, "three-regions": 3}[topology]
    assert run["events.lost"] == (0,)
"""


@dataclass(frozen=True)
class Ran:
    """A finished session of pytest."""

    folder: Path
    output: str
    junit: ElementTree.Element

    def case(self, name: str) -> ElementTree.Element:
        """Return a test's JUnit element."""
        [found] = [case for case in self.junit.iter("testcase") if case.get("name") == name]
        return found

    def failure(self, name: str) -> str | None:
        """Return the first line of its failure, or None."""
        found = self.case(name).find("failure")
        return None if found is None else str(found.get("message")).splitlines()[0]

    def properties(self, name: str, of: str) -> list[Path]:
        """Return the reports that a test names."""
        return [
            Path(str(each.get("value")))
            for each in self.case(name).iter("property")
            if each.get("name") == of
        ]

    def section(self, name: str) -> str:
        """Return the text below a heading for the failure of this test."""

        [_, text] = re.split(rf"_+ {name} _+\n", self.output)
        return re.split(r"\n[_=]{3,}", text)[0]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("somebody")
    for name in ("checks", "experiments", "topologies"):  # those of ours must not be hidden by them
        (folder / name).mkdir()
    write_experiment(folder / "experiments", faults=CUT + QUICK)
    (folder / "checks" / "test_nightly.py").write_text(TESTS)
    options = ["--cutset-out", "runs", "--cutset-history", "history", "--junitxml", "junit.xml"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--basetemp=tmp", *options, "checks"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ran(folder, done.stdout, ElementTree.parse(folder / "junit.xml").getroot())


@pytest.mark.slow
def test_true_expectations_pass_and_false_ones_fail_in_one_line(ran):
    assert ran.failure("test_holds") is None
    said = ran.failure("test_does_not_hold")
    assert said is not None
    assert re.fullmatch(r"assert [\d.]+ < 0\.5", said)


@pytest.mark.slow
def test_expectations_of_the_experiment_count_unless_they_are_allowed_to_fail(ran):
    said = ran.failure("test_expectation")
    assert said is not None
    assert "expectation: events.lost == 1 did not hold (0)" in said
    assert ran.failure("test_allowed") is None


@pytest.mark.slow
def test_the_failure_is_shown_at_the_line_of_the_test(ran):
    asked = {
        "test_expectation": 'cutset.run(EXPERIMENT, set={"expect": ["events.lost == 1"]})',
        "test_unknown": 'cutset.run("tinny")',
    }
    for name, line in asked.items():
        shown = ran.section(name)
        assert f">       {line}\n" in shown
        assert str(PROJECT) not in shown.split("---")[0]


@pytest.mark.slow
def test_equal_requests_share_one_run(ran):
    assert ran.failure("test_different_requests_for_the_same_run") is None
    seeds = sorted(path.name for path in (ran.folder / "runs").iterdir())
    assert len(seeds) == 6  # two of the first, one of seed 7, one that fails, one for each topology
    assert "cutset: 6 runs (5 passed, 1 failed) in " in ran.output


@pytest.mark.slow
def test_a_failed_test_names_its_runs_and_their_reports(ran):
    reports = ran.properties("test_does_not_hold", "cutset_report")
    assert [report.parent for report in reports] == ran.properties("test_does_not_hold", "cutset_run")
    assert len(reports) == 2
    shown = ran.section("test_does_not_hold")
    for report in reports:
        assert "<html" in report.read_text()[:500]
        assert f"  report  {report}" in shown


@pytest.mark.slow
def test_a_failed_test_has_the_replay_command_of_its_run(ran):
    [command] = re.findall("^  again   (.*)$", ran.section("test_expectation"), re.MULTILINE)
    assert command == (
        "cutset run experiments/tiny.yaml"
        " --set 'expect=[\"events.lost == 1\"]' --seed 1 --repeat 1 --on simulator"
    )


@pytest.mark.slow
def test_a_topology_is_a_name_or_a_file_beside_the_test(ran):
    assert [case.get("name") for case in ran.junit.iter("testcase") if case.find("failure") is None][-2:] == [
        "test_everywhere[../experiments/two-regions.yaml]",
        "test_everywhere[three-regions]",
    ]


@pytest.mark.slow
def test_runs_are_in_the_history_each_once(ran):
    from analysis.history import History

    rows = History(ran.folder / "history").runs().to_pylist()
    assert {row["run"] for row in rows} == {path.name for path in (ran.folder / "runs").iterdir()}
    assert len(rows) == 6
    assert {row["suite"] for row in rows} == {"pytest"}
    entries = Counter(row["entry"] for row in rows)
    assert all(re.fullmatch("tiny-[0-9a-f]{8}", entry) for entry in entries)
    [(most, runs), *others] = entries.most_common()
    assert (runs, [count for _, count in others]) == (3, [1, 1, 1])
    assert sorted((row["repeat"], row["seed"]) for row in rows if row["entry"] == most) == [
        (0, 1), (1, 2), (2, 7),
    ]  # fmt: skip


NOTHING = "def test_nothing(): pass\n"


def test_a_history_needs_a_lasting_place_for_its_runs(pytester):
    pytester.makepyfile(NOTHING)
    result = pytester.runpytest_inprocess("--cutset-history", "history")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --cutset-history needs --cutset-out: *"])


def test_invalid_requests_are_refused_before_any_run(pytester):
    wrong = {
        "repeat=0": "repeat: should be from 1 to 100, not 0",
        "links='neten'": "links: there is no neten: did you mean netem?",
        "allow=['fail']": "allow: there is no fail: did you mean failed?",
        "on='mars'": "there is no backend mars; known: local, simulator, *",
    }
    tests = [f"def test_{n}(cutset): cutset.run('throughput', {given})" for n, given in enumerate(wrong)]
    pytester.makepyfile("\n".join(tests))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=len(wrong))
    result.stdout.fnmatch_lines([f"E *InputError: *{said}" for said in wrong.values()])
    result.stdout.no_fnmatch_line("cutset: *runs*")


def test_real_runs_are_refused_beside_others(pytester):
    pytester.makeconftest("def pytest_configure(config): config.workerinput = {}")
    pytester.makepyfile("def test_beside(cutset): cutset.run('link-failure', on='local')")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *{CALL}: runs of real processes go one at a time*without -n*"])


@pytest.mark.slow
def test_the_plugin_costs_nothing_if_unused(pytester):
    heavy = ["numpy", "pydantic", "analysis", "testbed.cli", "experiments"]
    pytester.makepyfile(f"import sys\ndef test_light(): assert not sys.modules.keys() & set({heavy})\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
