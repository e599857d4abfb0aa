"""Privileges of the processes of a real run (proc(5), capabilities(7))."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.runner.live import LiveRun

pytestmark = pytest.mark.network

NODES = {f"r{region}/{role}-0" for region in (0, 1) for role in ("proxy", "driver", "client")}
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
CAP_NET_ADMIN, CAP_SYS_PTRACE, CAP_SYS_ADMIN = 12, 19, 21


def statuses(token: str) -> Iterator[dict[str, str]]:
    """Yield the fields of /proc/PID/status of each process of a run."""
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            text, environment = path.read_text(), (path.parent / "environ").read_bytes()
        except OSError:
            continue
        if token.encode() in environment:
            fields = (line.partition(":") for line in text.splitlines())
            yield {name: value.strip() for name, _, value in fields} | {"environ": environment.decode()}


def test_nodes_have_no_rights_and_captures_none_to_change_the_network(tmp_path):
    with LiveRun(tmp_path, "--set", "duration=60s", SSH_AUTH_SOCK="/run/agent", A_TOKEN="secret") as run:
        run.until("running for")
        found = list(statuses(run.token))
        run.process.send_signal(signal.SIGINT)
        assert run.wait() == 130, run.said
        assert {process["exit"]["code"] for process in run.record()["processes"]} == {0}
    nodes = {each["Name"]: each for each in found if each["Name"] in NODES}
    assert set(nodes) == NODES
    for name, each in nodes.items():
        assert {each[key] for key in SETS} == {f"{0:016x}"}, name
        assert each["NoNewPrivs"] == "1", name
        assert "secret" not in each["environ"]
        assert "SSH_AUTH_SOCK" not in each["environ"]
    captures = [each for each in found if each["Name"] == "tcpdump"]
    assert captures
    for each in captures:
        assert each["NoNewPrivs"] == "1"
        for key in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
            rights = int(each[key], 16)
            assert not any(rights >> bit & 1 for bit in (CAP_NET_ADMIN, CAP_SYS_PTRACE, CAP_SYS_ADMIN)), key
