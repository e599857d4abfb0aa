"""Programs of the declared packages: with hand-written packages, and on this machine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.doctor import packages
from tests.testbed.provision.declared import (
    DPKG,
    FOLDERS,
    closure,
    declared_programs,
    installed,
    link_all,
    programs,
)

STATUS = """\
Package: base
Essential: yes
Status: install ok installed
Depends: libbase

Package: libbase
Status: install ok installed
Priority: optional

Package: wanted
Status: install ok installed
Pre-Depends: early:any (>= 2)
Depends: gone | second | third, virtual [amd64]
Recommends: recommended

Package: early
Status: install ok installed

Package: gone
Status: deinstall ok config-files

Package: second
Status: install ok installed

Package: third
Status: install ok installed

Package: provider
Status: install ok installed
Provides: virtual (= 1), other
Depends: wanted

Package: recommended
Status: install ok installed

Package: by-hand
Status: install ok installed
Depends: base
"""
debian = pytest.mark.skipif(not DPKG.exists(), reason="no Debian packages here")


def test_a_package_includes_dependencies_but_not_recommendations() -> None:
    here = list(installed(STATUS))
    assert closure([], here) == {"base", "libbase"}
    assert closure(["wanted"], here) == {"base", "libbase", "wanted", "early", "second", "provider"}
    assert closure(["other"], here) >= {"provider", "wanted"}
    assert closure(["not-installed"], here) == {"base", "libbase"}


def test_programs_are_found_by_their_packages_also_behind_links(tmp_path: Path) -> None:
    for name in ("usr/bin/own", "usr/bin/by-hand", "usr/bin/ours", "usr/lib/x/real", "sbin/old"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "usr/bin/chosen").symlink_to(tmp_path / "usr/lib/x/real")  # as update-alternatives does
    info = tmp_path / "dpkg/info"
    info.mkdir(parents=True)
    (info / "wanted.list").write_text("/bin/own\n/sbin/old\n")
    (info / "lib:amd64.list").write_text("/usr/lib/x/real\n")
    (info / "other.list").write_text("/usr/bin/by-hand\n")
    found = programs({"wanted", "lib"}, root=tmp_path, dpkg=tmp_path / "dpkg")
    assert found.keys() == {"own", "old", "chosen"}


@debian
def test_an_undeclared_package_is_detected(tmp_path: Path) -> None:
    """Check that without the line the PATH lacks its program."""
    forgotten = "iperf3"
    here = list(installed((DPKG / "status").read_text()))
    [proof] = [package.proof for package in packages() if package.name == forgotten]
    for folder, lines in (("all", packages()), ("rest", [p for p in packages() if p.name != forgotten])):
        (tmp_path / folder).mkdir()
        link_all(declared_programs(lines, here), tmp_path / folder)
    assert shutil.which(proof, path=tmp_path / "all") is not None
    assert shutil.which(proof, path=tmp_path / "rest") is None
    started = subprocess.run(
        ["sh", "-c", proof], env={"PATH": str(tmp_path / "rest")}, capture_output=True, text=True, check=False
    )
    assert (started.returncode, "not found" in started.stderr) == (127, True)


@debian
def test_the_suite_finds_no_program_of_packages_that_are_not_declared() -> None:
    here = list(installed((DPKG / "status").read_text()))
    declared = declared_programs(packages(), here)
    there = {path.name for folder in FOLDERS for path in (Path("/") / folder).iterdir()}
    assert {path.name for path in Path(os.environ["PATH"]).iterdir()} == declared.keys()
    assert [name for name in sorted(there - declared.keys()) if shutil.which(name)] == []
