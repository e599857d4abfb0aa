"""Files sent with a system of programs, and the places where programs are looked up."""

import os
from pathlib import Path

import pytest

from node.core.program import Need, Program, Programs, Readiness
from systems.loader import load_system
from systems.needs import MODULES
from testbed.errors import MachineError
from testbed.machines.archive import pack
from testbed.machines.software import program_files, unpacking
from testbed.machines.software.needed_programs import needs_of, versions_of_run
from testbed.machines.software.program_files import MODULES_IN_ARCHIVE, SYSTEM_FOLDER, attached
from topologies.errors import InputError


def programs(folder: Path, *needs: Need) -> Programs:
    return Programs(str(folder / "system.yaml"), str(folder), needs, {})


def module(name: str) -> Need:
    return Need("module", name, f"pip install {name}")


def test_the_systems_folder_is_sent_and_executables_stay_executable(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("system.yaml", "bin/broker", ".git", "bin/notes.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "bin/broker").chmod(0o755)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/a.pyc").write_text("old")
    (tmp_path / "latest").symlink_to("bin/broker")
    found = attached("mine", programs(tmp_path))
    assert set(found.files) == {
        f"{SYSTEM_FOLDER}/{name}" for name in ("system.yaml", "bin/broker", "bin/notes.txt", "latest")
    }
    assert found.executables == {f"{SYSTEM_FOLDER}/bin/broker", f"{SYSTEM_FOLDER}/latest"}


def test_program_files_are_executable_after_their_transfer(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/broker").write_text("#!/bin/sh\n")
    (tmp_path / "mine/broker").chmod(0o700)
    (tmp_path / "mine/notes.txt").write_text("")
    also = attached("mine", programs(tmp_path / "mine"))
    unpacking.unpack(pack(also.files, also.executables), tmp_path / "there")
    folder = tmp_path / "there" / SYSTEM_FOLDER
    assert os.access(folder / "broker", os.X_OK)
    assert not os.access(folder / "notes.txt", os.X_OK)


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "mine/key").symlink_to("../secret")
    with pytest.raises(InputError, match=r"system.yaml: its folder is sent to machines, but .*key leads out"):
        attached("mine", programs(tmp_path / "mine"))


def test_a_folder_that_is_too_large_is_refused_by_its_largest_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_files, "FOLDER_BYTES_MAX", 2 << 20)
    (tmp_path / "small").write_bytes(b"1")
    (tmp_path / "capture.pcap").write_bytes(bytes(3 << 20))
    with pytest.raises(InputError, match=r"2 files with 3 MiB .capture.pcap has 3.; at most .* 2 M"):
        attached("mine", programs(tmp_path))


def test_a_module_is_sent_with_its_requirements_except_standard_ones(tmp_path: Path) -> None:
    found = attached("mine", programs(tmp_path, module("jinja2"), module("sqlite3")))
    tops = {name.removeprefix(f"{MODULES_IN_ARCHIVE}/").partition("/")[0] for name in found.files}
    assert {"jinja2", "markupsafe"} <= tops
    assert "sqlite3" not in tops
    assert any(name.endswith(".so") for name in found.files)


def test_a_missing_module_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"`no_such_module`, which is not installed here: pip install no_"):
        attached("mine", programs(tmp_path, module("no_such_module")))


@pytest.mark.skipif(not (MODULES / "zmq").exists(), reason="`make systems` gets it")
def test_compiled_modules_come_with_the_shared_objects_beside_them(tmp_path: Path) -> None:
    found = attached("zeromq", load_system("zeromq").programs)
    assert any(name.startswith(f"{MODULES_IN_ARCHIVE}/pyzmq.libs/") for name in found.files)
    assert f"{SYSTEM_FOLDER}/proxy.py" in found.files


ROLES = {
    "broker": Program(("brokerd", "-c", "conf"), ready=Readiness(command=("ask", "it"))),
    "client": Program(("{{ python }}", "client.py")),
}
BROKER, ASK, HIDDEN = (Need("program", name, f"get {name}") for name in ("brokerd", "ask", "in-a-script"))


def test_a_program_is_needed_where_its_role_runs_or_everywhere() -> None:
    known = Programs("system.yaml", "/", (BROKER, ASK, HIDDEN, module("m")), ROLES)
    assert needs_of(known, {"broker", "client"}) == (BROKER, ASK, HIDDEN, module("m"))
    assert needs_of(known, {"client"}) == (HIDDEN, module("m"))
    assert needs_of(known, set()) == ()


def test_equal_versions_of_all_machines_are_reported_once() -> None:
    same = {"h0": {"brokerd": "1.0", "ask": None}, "h1": {"brokerd": "1.0"}}
    assert versions_of_run(same) == {"brokerd": "1.0", "ask": None}
    assert versions_of_run({**same, "h1": {"brokerd": "1.1"}}) == {"brokerd": "h0: 1.0; h1: 1.1", "ask": None}
