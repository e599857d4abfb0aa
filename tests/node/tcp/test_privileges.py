"""Nodes and programs have only the privileges that they need, according to /proc (proc(5)) of real
processes.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from node.tcp.privileges import CAPABILITIES_MAX, OF_PROGRAMS
from testbed.processes import handed_on
from tests.node.programs.minded import WITHIN, shell, spec
from tests.node.tcp.launched import launcher, loopback_specs

SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
GIVE_UP = """\
from pathlib import Path
from node.tcp.privileges import drop_capabilities, limit_bounding_set
kept = frozenset({0, 1})
limit_bounding_set(kept)
drop_capabilities(kept)
print(Path("/proc/self/status").read_text())
"""


def status(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_a_node_has_no_capabilities_and_never_gets_any(tmp_path: Path) -> None:
    (one, *_) = loopback_specs(tmp_path, regions=1, clients=1)
    with launcher() as launched:
        launched.start(one)
        pid = launched.wait(lambda: launched.all_said("started", name=one.name))[0]["pid"]
        launched.wait_ready(1)
        found = status(pid)
    assert found["Name"] == one.name[:15]
    assert found["NoNewPrivs"] == "1"
    bounding = {"CapBnd"} if os.geteuid() != 0 else set()  # only root may lower that
    assert {found[name] for name in {*SETS} - bounding} == {f"{0:016x}"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's programs have capabilities")
def test_a_root_program_has_only_the_capabilities_of_servers(tmp_path: Path) -> None:
    one = spec(tmp_path, shell("exec sleep 60"))
    with launcher(WITHIN) as launched:
        launched.start(one)
        launched.wait_ready(1)
        (line,) = [each for each in Path(one.log).read_text().splitlines() if '"started"' in each]
        pid = int(line.rpartition('"pid":')[2].strip("}"))
        found = status(pid)
        launched.finish(1)
    allowed = sum(1 << number for number in OF_PROGRAMS)
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(found[name], 16) & ~allowed == 0, name
    assert int(found["CapEff"], 16) != 0
    assert found["NoNewPrivs"] == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has any")
def test_only_the_kept_capabilities_remain_in_any_set() -> None:
    done = subprocess.run([sys.executable, "-c", GIVE_UP], capture_output=True, text=True, check=True)
    found = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if line.startswith("Cap"))
    assert {int(found[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")} == {0b11}
    assert {int(found[name], 16) for name in ("CapInh", "CapAmb")} == {0}
    assert max(OF_PROGRAMS) < CAPABILITIES_MAX


def test_nodes_do_not_inherit_the_users_keys_and_sessions() -> None:
    kept = {"PATH": "/bin", "LC_ALL": "C", "CUTSET_RUN": "x", "PYTHONPATH": "/p"}
    secrets = dict.fromkeys(("SSH_AUTH_SOCK", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"), "x")
    assert set(handed_on(kept | secrets)) == set(kept)
