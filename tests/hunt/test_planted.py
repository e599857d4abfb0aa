"""Planted defects match their catalogue: patches are small, and a run without faults does not show them."""

import multiprocessing
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from multiprocessing.pool import Pool

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
MUTANTS_MIN, HELD_OUT, HUNKS_MAX, CHILD_TIMEOUT_S = 30, 10, 2, 300


def named(mutant: Mutant) -> str:
    return mutant.name


@pytest.fixture
def first() -> Mutant:
    return mutants()[0]


def test_the_catalogue_has_enough_mutants_per_system_and_holds_ten_out():
    counts = Counter(mutant.system for mutant in mutants())
    assert counts.keys() == SYSTEMS
    assert sum(counts.values()) >= MUTANTS_MIN
    assert min(counts.values()) >= MUTANTS_MIN // 5
    held_out = [mutant.system for mutant in mutants() if mutant.is_held_out]
    assert len(held_out) == HELD_OUT
    assert set(held_out) == SYSTEMS
    assert sorted(mutant.patch for mutant in mutants()) == sorted(MUTANTS.rglob("*.patch"))


@pytest.mark.parametrize("mutant", mutants(), ids=named)
def test_a_patch_applies_and_has_at_most_two_hunks(mutant, tmp_path):
    assert all((mutant.defect.endswith("."), mutant.effect, mutant.trigger))
    lines = mutant.patch.read_text().splitlines()
    assert 1 <= sum(line.startswith("@@ ") for line in lines) <= HUNKS_MAX
    assert [line[6:] for line in lines if line.startswith("+++ b/")] == list(mutant.files)
    copy = planted_copy(mutant, tmp_path / "copy", ["node"])
    for file in mutant.files:
        changed = (copy / file).read_text()
        assert changed != (PROJECT / file).read_text()
        compile(changed, file, "exec")


def test_a_stale_patch_raises_a_planting_error(first, tmp_path, monkeypatch):
    stale = tmp_path / "stale.patch"
    stale.write_text(first.patch.read_text().replace("\n-", "\n-former code "))
    monkeypatch.setattr(Mutant, "patch", property(lambda mutant: stale))
    with pytest.raises(PlantingError, match="does not apply any more"):
        planted_copy(first, tmp_path / "copy")


def test_a_child_imports_the_copy_and_this_checkout_stays_unchanged(first, tmp_path):
    before = {file: (PROJECT / file).read_bytes() for file in first.files}
    copy = planted_copy(first, tmp_path / "copy")
    assert {file: (PROJECT / file).read_bytes() for file in first.files} == before
    assert not any((copy / file).samefile(PROJECT / file) for file in first.files)
    code = "import node, analysis; print(node.__file__, analysis.__file__)"
    output = subprocess.run(
        [sys.executable, SAFE_PATH, "-c", code], cwd=copy, env=planted_environment(copy),
        stdout=subprocess.PIPE, text=True, timeout=CHILD_TIMEOUT_S, check=True,
    ).stdout  # fmt: skip
    assert output.split() == [str(copy / package / "__init__.py") for package in ("node", "analysis")]


@pytest.fixture(scope="module")
def fresh_processes() -> Iterator[Pool]:
    """Yield a pool that runs each call in a fork of a process with all imports but no state machine."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", broken_in_copy.__module__])
    with context.Pool(1, maxtasksperchild=1) as pool:
        yield pool


@pytest.mark.slow
@pytest.mark.parametrize("mutant", {each.system: each for each in mutants()}.values(), ids=named)
def test_a_run_without_faults_does_not_show_the_defect(mutant, tmp_path, fresh_processes):
    copy = planted_copy(mutant, tmp_path / "copy", ["node"])
    run = fresh_processes.apply_async(broken_in_copy, (copy, mutant.files, mutant.system, tmp_path))
    assert run.get(CHILD_TIMEOUT_S) == []
