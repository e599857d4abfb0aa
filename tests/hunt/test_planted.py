"""The planted defects are what their catalogue says: small, and hidden in a run without faults."""

import multiprocessing
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from multiprocessing.pool import Pool
from pathlib import Path

import pytest

from experiments.child_python import SAFE_PATH
from tests.hunt.fault_free import broken_in_copy
from tests.hunt.planted import (
    MUTANTS,
    PROJECT,
    Mutant,
    PlantingError,
    mutants,
    planted_copy,
    planted_environment,
)

SYSTEMS = {"sprinkler", "scribe", "meghdoot"}
LEAST, SET_ASIDE, PLACES_MAX, CHILD_TIMEOUT_S = 30, 10, 2, 300


def named(mutant: Mutant) -> str:
    return mutant.name


@pytest.fixture
def first() -> Mutant:
    return mutants()[0]


def changed_files(mutant: Mutant) -> list[str]:
    lines = mutant.patch.read_text().splitlines()
    return [line.removeprefix("+++ b/") for line in lines if line.startswith("+++ ")]


def run_in(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=copy, env=planted_environment(copy), capture_output=True, text=True,
        timeout=CHILD_TIMEOUT_S, check=False,
    )  # fmt: skip


# --- The catalogue


def test_there_are_enough_of_all_three_systems():
    of_each = Counter(mutant.system for mutant in mutants())
    assert of_each.keys() == SYSTEMS
    assert sum(of_each.values()) >= LEAST
    assert min(of_each.values()) >= LEAST // 5


def test_ten_are_set_aside_and_spread_over_the_systems():
    aside = [mutant.system for mutant in mutants() if mutant.is_set_aside]
    assert len(aside) == SET_ASIDE
    assert set(aside) == SYSTEMS


def test_every_patch_is_in_the_catalogue_once():
    patches = [mutant.patch for mutant in mutants()]
    assert sorted(patches) == sorted(MUTANTS.rglob("*.patch"))
    assert len({mutant.name for mutant in mutants()}) == len(patches)


@pytest.mark.parametrize("mutant", mutants(), ids=named)
def test_each_says_what_is_wrong_what_it_breaks_and_what_that_takes(mutant):
    assert all((mutant.slip, mutant.breaks, mutant.takes))
    assert mutant.slip.endswith(".")


# --- The patches


@pytest.mark.parametrize("mutant", mutants(), ids=named)
def test_a_patch_changes_one_or_two_places(mutant):
    lines = mutant.patch.read_text().splitlines()
    assert 1 <= sum(line.startswith("@@ ") for line in lines) <= PLACES_MAX
    assert changed_files(mutant) == list(mutant.files)
    assert all(file.startswith("node/") for file in mutant.files)


@pytest.mark.parametrize("mutant", mutants(), ids=named)
def test_a_patch_applies_to_the_code_as_it_stands_and_compiles(mutant, tmp_path):
    copy = planted_copy(mutant, tmp_path / "copy", ["node"])
    for file in mutant.files:
        changed = (copy / file).read_text()
        assert changed != (PROJECT / file).read_text()
        compile(changed, file, "exec")


def test_a_patch_that_does_not_apply_any_more_says_so(first, tmp_path, monkeypatch):
    stale = tmp_path / "stale.patch"
    stale.write_text(first.patch.read_text().replace("\n-", "\n-what stood there before "))
    monkeypatch.setattr(Mutant, "patch", property(lambda mutant: stale))
    with pytest.raises(PlantingError, match="does not apply any more"):
        planted_copy(first, tmp_path / "copy")


# --- The copies


def test_planting_leaves_this_checkout_unchanged(first, tmp_path):
    before = {file: (PROJECT / file).read_bytes() for file in first.files}
    copy = planted_copy(first, tmp_path / "copy")
    assert {file: (PROJECT / file).read_bytes() for file in first.files} == before
    assert not any((copy / file).samefile(PROJECT / file) for file in first.files)


def test_a_child_imports_the_copy(first, tmp_path):
    copy = planted_copy(first, tmp_path / "copy")
    said = run_in(
        copy,
        sys.executable,
        SAFE_PATH,
        "-c",
        "import node, analysis; print(node.__file__, analysis.__file__)",
    )
    node, analysis = map(Path, said.stdout.split())
    assert (node, analysis) == (copy / "node" / "__init__.py", copy / "analysis" / "__init__.py")


@pytest.fixture(scope="module")
def fresh_processes() -> Iterator[Pool]:
    """Yield a pool that runs each call in a fork of a process with all imports but no state machine."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", broken_in_copy.__module__])
    with context.Pool(1, maxtasksperchild=1) as pool:
        yield pool


@pytest.mark.slow
@pytest.mark.parametrize("mutant", {each.system: each for each in mutants()}.values(), ids=named)
def test_a_run_without_faults_does_not_show_it(mutant, tmp_path, fresh_processes):
    copy = planted_copy(mutant, tmp_path / "copy", ["node"])
    run = fresh_processes.apply_async(broken_in_copy, (copy, mutant.files, mutant.system, tmp_path))
    assert run.get(CHILD_TIMEOUT_S) == []
