"""Limits of processes by control groups of this kernel's version; nothing of them remains.

`tests/testbed/uml` runs this file with version 2.
"""

import json
import os
import secrets
import subprocess
import sys
import time

import pytest

from testbed.sandbox import Sandbox
from testbed.sandbox.control_groups import hierarchies, why_no_groups

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(os.geteuid() != 0 or why_no_groups() is not None, reason="no control groups here"),
]

HOLDER = """
import sys
from testbed.sandbox import Sandbox
command = [sys.executable, "-m", "tests.testbed.sandbox.in_groups", sys.argv[1], "hold"]
with Sandbox(command, token=sys.argv[1], control_groups=True) as sandbox:
    sandbox.wait()
"""


def in_groups(token: str) -> dict[str, float]:
    """Use a group in a sandbox. Fails if the token's group remains."""
    command = [sys.executable, "-m", "tests.testbed.sandbox.in_groups", token, "measure"]
    with Sandbox(command, token=token, stdout=subprocess.PIPE, control_groups=True) as sandbox:
        assert sandbox.process.stdout is not None
        found: dict[str, float] = json.loads(sandbox.process.stdout.read())
        return found


@pytest.mark.slow
def test_limits_are_enforced_and_nothing_remains_after_a_kill():
    token = secrets.token_hex(4)
    with subprocess.Popen([sys.executable, "-c", HOLDER, token], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "{}\n"
        keepers = subprocess.run(["pgrep", "-f", f"group_keeper {token}"], capture_output=True, check=True)
        holder.kill()
    while subprocess.run(["pgrep", "-f", f"group_keeper {token}"], check=False).returncode == 0:
        time.sleep(0.05)
    assert keepers.stdout
    found = in_groups(token)
    assert 0.1 < found["share"] < 0.25
    assert (found["too_much"], found["had_too_much"], found["unlimited"]) == (-9, -9, 0)
    assert (found["killed"], found["killed_again"]) == (1, 2)
    assert in_groups(token)["unlimited"] == 0


def test_the_hierarchies_of_version_1_are_those_of_the_needed_controllers():
    own = "9:name=systemd:/\n4:memory:/a/b\n3:cpuset:/\n2:cpu,cpuacct:/\n0::/user.slice\n"
    assert hierarchies(own) == [("memory", "/a/b"), ("cpu,cpuacct", "/")]
    assert hierarchies("0::/user.slice\n") == []
