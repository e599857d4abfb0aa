"""The compiled copy of the package `node` is imported only if its sources are unchanged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import node
from node.native import modules

FOUND = "import sys; sys.prefix = sys.argv[1]; import node.systems as s; print(s.__file__)"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the package in the place that `make native` uses."""
    return Path(shutil.copytree(node.HERE, tmp_path / "native/node"))


def found(prefix: Path, **environment: str) -> Path:
    """Return the file from which a new Python imports `node.systems`."""
    words = [sys.executable, "-c", FOUND, str(prefix)]
    given = {**os.environ, "CUTSET_PLAIN": "", **environment}
    done = subprocess.run(words, env=given, cwd=node.HERE.parent, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def test_a_copy_of_the_same_sources_is_imported(copy: Path, tmp_path: Path) -> None:
    assert found(tmp_path) == copy / "systems.py"


def test_plain_python_can_be_requested(copy: Path, tmp_path: Path) -> None:
    assert found(tmp_path, CUTSET_PLAIN="1") == node.HERE / "systems.py"


def test_a_copy_of_other_sources_is_not_imported(copy: Path, tmp_path: Path) -> None:
    with (copy / "core/log.py").open("a") as file:
        file.write("\n")
    assert found(tmp_path) == node.HERE / "systems.py"


def test_every_folder_of_the_list_has_modules_to_compile() -> None:
    found_modules = modules(node.HERE)
    assert "node/sim/pipe.py" in found_modules
    assert "node/protocols/sprinkler/proxy.py" in found_modules
    assert "node/protocols/sprinkler/messages.py" not in found_modules
