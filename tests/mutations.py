"""Draw small mutations of product code by a seed and count how many the tests detect.

    .venv/bin/python -m tests.mutations --count 200 --seed 1
    .venv/bin/python -m tests.mutations --count 200 --seed 1 --tests ../before/tests   # an earlier suite

A mutation changes one operator or number of one module, in a copy of the checkout. The test files that
import the module run against it, the closest first by imports; tests that need a network, machines, Spark or
a browser are left out. A mutation is detected if a test fails that passes without it, or if the tests do not
end within CPU_S. Each mutation is printed as a line of JSON; the counts come last.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from experiments.child_python import SAFE_ENVIRONMENT
from tests.hunt.planted import PACKAGES, PROJECT

FILES_MAX = 6
"""Test files that run against one mutation."""
CPU_S = 120
WALL_S = 1200
LEFT_OUT = "not (network or machines or uml or browser or spark)"
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutation:
    """The `place`-th node of a module that can be mutated, in the order of `ast.walk`."""

    module: str
    line: int
    place: int


def mutable_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield comparisons, Boolean and arithmetic operations and numbers outside annotations."""
    annotations = {
        id(node)
        for parent in ast.walk(tree)
        for name in ("annotation", "returns", "decorator_list")
        for part in _parts(getattr(parent, name, None))
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) not in annotations and _is_mutable(node):
            yield node


def _is_mutable(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and type(node.ops[0]) in SWAPS
    if isinstance(node, (ast.BoolOp, ast.BinOp)):
        return type(node.op) in SWAPS
    return isinstance(node, ast.Constant) and type(node.value) is int


def _parts(value: object) -> list[ast.AST]:
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST)]


def mutated(source: str, place: int) -> str:
    """Return the source with the mutable node at `place` changed."""
    tree = ast.parse(source)
    node = list(mutable_nodes(tree))[place]
    if isinstance(node, ast.Compare):
        node.ops = [SWAPS[type(node.ops[0])]()]
    elif isinstance(node, (ast.BoolOp, ast.BinOp)):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value += 1
    return ast.unparse(tree)


def draw(count: int, seed: int) -> list[Mutation]:
    """Draw mutations uniformly over all mutable nodes of the product's packages."""
    every = [
        Mutation(str(path.relative_to(PROJECT)), node.lineno, place)
        for package in PACKAGES
        for path in sorted((PROJECT / package).rglob("*.py"))
        if "node_modules" not in path.parts
        for place, node in enumerate(mutable_nodes(ast.parse(path.read_text())))
    ]
    return random.Random(seed).sample(every, count)


def importers(root: Path) -> dict[str, set[str]]:
    """Map each module's path below `root` to the paths of the modules that import it."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in (*PACKAGES, "tests"):
        for path in (root / package).rglob("*.py"):
            if "node_modules" in path.parts:
                continue
            for name in _imported(ast.parse(path.read_text())):
                target = Path(*name.split("."))
                for file in (target.with_suffix(".py"), target / "__init__.py"):
                    if (root / file).exists():
                        found[str(file)].add(str(path.relative_to(root)))
    return found


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def closest_tests(module: str, imported_by: dict[str, set[str]]) -> list[str]:
    """Return up to FILES_MAX test files that import a module: fewest steps first, then its own folder."""
    seen, front, tests = {module}, [module], []
    while front and len(tests) < FILES_MAX:
        front = sorted({importer for each in front for importer in imported_by[each]} - seen)
        seen.update(front)
        near = [path for path in front if Path(path).name.startswith("test_")]
        tests += sorted(near, key=lambda path: (str(Path(module).parent) not in path, path))
    return tests[:FILES_MAX]


def checkout_copy(tests: Path, destination: Path) -> Path:
    """Copy the tracked files of this checkout, with `tests` as its tests."""
    tracked = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        if not name.startswith("tests/") and (PROJECT / name).is_file():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, destination / name)
    shutil.copytree(tests, destination / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    return destination


def failing(copy: Path, tests: list[str]) -> list[str]:
    """Run tests in a copy up to the first that fails; return it, or "timeout", or nothing if all pass."""
    environment = {**os.environ, **SAFE_ENVIRONMENT, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    pytest = ["-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", "-m", LEFT_OUT, *tests]
    command = ["prlimit", f"--cpu={CPU_S}", sys.executable, *pytest]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=WALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return ["timeout"]
    if done.returncode < 0:  # killed at its limit
        return ["timeout"]
    if done.returncode in {0, 5}:
        return []
    lines = (line.split(" ") for line in done.stdout.splitlines())
    return [words[1] for words in lines if words[0] in {"FAILED", "ERROR"}] or ["not collected"]


def detection(mutation: Mutation, copy: Path, tests: list[str]) -> str | None:
    """Return what detects a mutation: a test, "timeout" or "not collected"; None if nothing does."""
    file = copy / mutation.module
    source = file.read_text()
    file.write_text(mutated(source, mutation.place))
    try:
        failed = failing(copy, tests) if tests else []
    finally:
        file.write_text(source)
    if not failed or failed[0] in {"timeout", "not collected"}:
        return failed[0] if failed else None
    return None if failing(copy, failed[:1]) else failed[0]


def main() -> int:
    """Print a line for each mutation, then how many were detected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tests", type=Path, default=PROJECT / "tests", help="the tests of another checkout")
    arguments = parser.parse_args()
    mutations = draw(arguments.count, arguments.seed)
    with tempfile.TemporaryDirectory(prefix="cutset-mutations-") as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for job in range(arguments.jobs):
            copies.put(checkout_copy(arguments.tests, Path(folder) / str(job)))
        imported_by = importers(Path(folder) / "0")

        def attempt(mutation: Mutation) -> bool:
            copy = copies.get()
            try:
                tests = closest_tests(mutation.module, imported_by)
                detected_by = detection(mutation, copy, tests)
            finally:
                copies.put(copy)
            said = {
                "module": mutation.module,
                "line": mutation.line,
                "detected_by": detected_by,
                "tests": len(tests),
            }
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
            return detected_by is not None

        with ThreadPoolExecutor(arguments.jobs) as pool:
            detected = sum(pool.map(attempt, mutations))
    sys.stdout.write(f"{detected} of {len(mutations)} mutations detected\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
