"""The archive for machines: its content, its completeness, and its reproducibility."""

import gzip
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from node import systems
from testbed.backends.ssh_hosts import SshBackend
from testbed.errors import MachineError
from testbed.machines import archive
from testbed.machines.archive import loadable_part, machine_archive, pack

BYTES_MAX = 8 << 20
STARTED_ON_MACHINES = (
    "node.tcp.launcher",
    "testbed.machines.agent.__main__",
    "testbed.machines.agent.supervisor",
    "testbed.links.relay.__main__",
    "testbed.network.mininet_nodes",
    "testbed.runner.__main__",
    "testbed.sandbox.init",
    "testbed.machines.shipping.sender",
    "uvloop",
    "zstandard",
)
IMPORT_ALL = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
files = [getattr(module, "__file__", None) or "" for module in sys.modules.values()]
print("\\n".join(file for file in files if "site-packages" in file or "dist-packages" in file))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> archive.Archive:
    """Build the archive of this project."""
    return machine_archive(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def files(made: archive.Archive) -> dict[str, bytes]:
    return unpacked(made.content)


def unpacked(content: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


@pytest.mark.slow
def test_programs_started_on_a_machine_find_their_modules_in_the_archive(
    made: archive.Archive, tmp_path: Path
) -> None:
    subprocess.run(["tar", "-xzf", "-", "-C", str(tmp_path)], input=made.content, check=True, timeout=60)
    before = sorted(tmp_path.rglob("*"))
    command = [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(tmp_path), *STARTED_ON_MACHINES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "", "modules of this machine were used"
    assert sorted(tmp_path.rglob("*")) == before, "something had to be compiled there"


def test_the_archive_omits_unneeded_files_and_is_small(
    made: archive.Archive, files: dict[str, bytes]
) -> None:
    folders = {name.partition("/")[0] for name in files}
    assert not folders & {"analysis", "tests", "pyspark", "scapy", "paramiko", "numpy"}
    assert not [name for name in files if name.startswith(archive.NOT_ON_MACHINES)]
    assert "systems/client/cutset_client/publisher.py" in files
    assert len(made.content) < BYTES_MAX


def test_a_distribution_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"machines need no-such-thing, .*pip install no-such-thing"):
        machine_archive(tmp_path, more=["no-such-thing"])


def test_the_archives_bytecode_matches_its_sources(files: dict[str, bytes]) -> None:
    sources = {name: content for name, content in files.items() if name.endswith(".py")}
    assert sources
    for name, content in sources.items():
        code = files[importlib.util.cache_from_source(name, optimization="")]
        assert code[4:8] == b"\1\0\0\0", name  # PEP 552: by hash, not to be checked
        assert code[8:16] == importlib.util.source_hash(content), name


def test_the_same_files_give_the_same_bytes_in_any_process_and_order() -> None:
    files = {name: content for name, content in archive.project_files() if name.startswith("topologies/")}
    program = (
        "import sys\n"
        "from testbed.machines.archive import pack, project_files\n"
        "kept = [(n, c) for n, c in project_files() if n.startswith('topologies/')]\n"
        "sys.stdout.buffer.write(pack(dict(reversed(kept))))\n"
    )
    others = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            timeout=60,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert others == [pack(files)] * 2


def test_the_archive_is_built_once_and_old_ones_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(archive, "distribution_files", lambda _: iter(()))
    monkeypatch.setattr(
        archive, "pack", lambda files, _: calls.append(1) or gzip.compress(repr(files).encode())
    )
    state = {"node/a.py": b"0"}
    monkeypatch.setattr(archive, "project_files", lambda: iter(state.items()))
    first = machine_archive(tmp_path)
    assert machine_archive(tmp_path) == first
    assert len(calls) == 1
    for number in range(1, 5):
        for made in tmp_path.iterdir():  # when the clock was ahead
            os.utime(made, (4e9, 4e9))
        state["node/a.py"] = str(number).encode()
        assert machine_archive(tmp_path).sha256 != first.sha256
    assert len(list(tmp_path.iterdir())) == archive.ARCHIVES_KEPT


def test_a_shared_object_loses_only_what_the_loader_does_not_map(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("uvloop.loop")
    assert spec is not None
    assert spec.origin is not None
    whole = Path(spec.origin).read_bytes()
    part = loadable_part(whole)
    assert len(part) < len(whole)
    assert loadable_part(part) == part
    assert loadable_part(b"\x7fELF, but not") == b"\x7fELF, but not"
    header = slice(40, 64)  # where e_shoff to e_shstrndx stand, with what is between
    assert part[64:] == whole[64 : len(part)]
    assert part[: header.start] == whole[: header.start]


def test_a_users_system_is_included_if_it_is_named(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]
) -> None:
    module = Path(__file__).parents[2] / "broker" / "topic_broker.py"
    assert not any(name.startswith("own_systems/") for name in files)
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(module))
    assert dict(archive.project_files())["own_systems/topic_broker.py"] == module.read_bytes()


def test_a_system_of_an_installed_package_is_refused_for_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = SimpleNamespace(system="theirs", programs=None, traffic=(), triggered=(), routing=None)
    with pytest.raises(MachineError, match=r"theirs is a system of an installed package.*--system-module"):
        SshBackend(SimpleNamespace(), print).adapted(plan)  # type: ignore[arg-type]
