"""Requirements of systems: minimum versions of programs, and packages where Node.js finds them."""

import json
from pathlib import Path

import pytest

from node.core.program import Need
from systems.names import FOLDER
from systems.needs import missing, version_of


def program(folder: Path, said: str) -> str:
    """Return a PATH with one program, `tool`, that prints this version."""
    (folder / "tool").write_text(f"#!/bin/sh\necho '{said}'\n")
    (folder / "tool").chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("said", "at_least", "is_enough"),
    [
        ("v18.17.0", "18.17", True),
        ("v18.9.1", "18.17", False),
        ("tool 20", "18.17", True),
        ("tool 18", "18.17", False),
        ("no numbers", "18.17", False),
        ("no numbers", "", True),
    ],
)
def test_a_program_that_is_too_old_is_missing(tmp_path, said, at_least, is_enough):
    need = Need("program", "tool", "buy one", ("tool", "--version"), at_least)
    assert list(missing([need], program(tmp_path, said), tmp_path)) == ([] if is_enough else [need])


def test_an_absent_program_is_missing_whatever_the_needed_version(tmp_path):
    need = Need("program", "tool", "buy one", ("tool", "--version"), "1")
    assert list(missing([need], str(tmp_path), tmp_path)) == [need]


@pytest.mark.parametrize("at", [".", "systems", "systems/post"])
def test_a_package_is_found_beside_the_system_or_above(tmp_path, at):
    need, folder = Need("package", "@post/office", "make systems"), tmp_path / "systems" / "post"
    folder.mkdir(parents=True)
    assert list(missing([need], "", folder)) == [need]
    assert version_of(need, "", folder) is None
    package = tmp_path / at / "node_modules" / "@post" / "office"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"version": "1.2.3"}')
    assert list(missing([need], "", folder)) == []
    assert version_of(need, "", folder) == "1.2.3"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 3}'])
def test_a_package_without_a_version_has_none(tmp_path, text):
    package = tmp_path / "node_modules" / "office"
    package.mkdir(parents=True)
    (package / "package.json").write_text(text)
    assert version_of(Need("package", "office", "make systems"), "", tmp_path) is None


@pytest.mark.parametrize(
    "lock", sorted(FOLDER.glob("*/package-lock.json")), ids=lambda lock: lock.parent.name
)
def test_packages_of_node_are_pinned_by_hash_from_any_registry_and_run_no_scripts(lock):
    packages = {name: each for name, each in json.loads(lock.read_text())["packages"].items() if name}
    assert packages
    assert [
        name for name, each in packages.items() if not each.get("integrity", "").startswith("sha512-")
    ] == []
    assert [
        name for name, each in packages.items() if "resolved" in each or each.get("hasInstallScript")
    ] == []
