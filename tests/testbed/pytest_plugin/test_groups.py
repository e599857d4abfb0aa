"""Tests of one group run in one worker of pytest-xdist, with any versions of pytest and pytest-xdist."""

import pytest

from tests.testbed.leftovers import wait_until

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

TESTS = """
import os
import pathlib
import pytest

def note(request, group):
    attaching = request.config.pluginmanager.get_plugin("cutset-attaching")
    worker, beside = os.environ["PYTEST_XDIST_WORKER"], attaching.beside_others
    with pathlib.Path("ran").open("a") as ran:
        ran.write(f"{group} {worker} {beside}\\n")

@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("group", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in "ab"])
def test_grouped(request, turn, group):
    note(request, group)

@pytest.mark.parametrize("turn", ["with ] and @ in it", "::"])
def test_alone(request, turn):
    note(request, "-")
"""


def test_a_group_stays_in_one_worker_without_others(pytester):
    pytester.makepyfile(test_one=TESTS, test_two=TESTS)
    result = pytester.runpytest_subprocess("-n", "2", "--dist", "loadgroup", "-v")
    result.assert_outcomes(passed=20)
    ran = [line.split() for line in (pytester.path / "ran").read_text().splitlines()]
    workers = {group: {worker for name, worker, _ in ran if name == group} for group in "ab"}
    assert all(len(those) == 1 for those in workers.values()), "groups are split"
    assert workers["a"] != workers["b"], "groups do not run beside each other"
    assert {(group, beside) for group, _, beside in ran} == {("a", "False"), ("b", "False"), ("-", "True")}
    result.stdout.fnmatch_lines([r"*PASSED test_one.py::test_alone[[]with ] and @ in it]*"])


def test_without_the_option_groups_may_be_split(pytester):
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("-n", "1", "--dist", "load").assert_outcomes(passed=10)
    ran = (pytester.path / "ran").read_text().splitlines()
    assert {line.split()[2] for line in ran} == {"True"}


def test_a_killed_session_leaves_no_folder(pytester, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("tmp")))
    pytester.makepyfile("import os\ndef test_kills(): os.kill(os.getppid(), 9)")
    pytester.runpytest_subprocess("-n", "1", "--dist", "loadgroup")
    wait_until(lambda: not list((pytester.path / "tmp").glob("cutset-*")), "the end of its folders")
