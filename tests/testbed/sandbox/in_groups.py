"""Uses control groups inside a sandbox: `python -m tests.testbed.sandbox.in_groups TOKEN ASKED`.

ASKED is "hold": make a group and stay; or "measure": print the effects of limits on processes, as JSON.
"""

import json
import subprocess
import sys
import time

from node.tcp.child import enter_control_groups
from testbed.sandbox.control_groups import ControlGroup, group_name, mount_hierarchies

WORK = "while True: pass"
HOLD = "import sys; held = b'1' * {} * 1_000_000; print('holds', flush=True); sys.stdin.read()"
SHARE, BURN_S = 0.2, 1.0
END_S_MAX = 60


def started(group: ControlGroup, program: str) -> "subprocess.Popen[str]":
    """Start a Python program in the group."""
    return subprocess.Popen(
        [sys.executable, "-S", "-c", program],
        preexec_fn=lambda: enter_control_groups(group.entries),  # noqa: PLW1509 - one thread
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def holding(group: ControlGroup, megabytes: int) -> "subprocess.Popen[str]":
    """Start a program that takes this much memory; return when it has the memory, or has ended."""
    process = started(group, HOLD.format(megabytes))
    assert process.stdout is not None
    process.stdout.readline()
    return process


def measured(group: ControlGroup) -> dict[str, float]:
    """Return the effects of limits."""
    found: dict[str, float] = {}
    group.limit_processor(SHARE)
    working = started(group, WORK)
    time.sleep(BURN_S / 2)
    before_s, began_s = group.used_s(), time.monotonic()
    time.sleep(BURN_S)
    found["share"] = (group.used_s() - before_s) / (time.monotonic() - began_s)
    working.kill()
    working.wait()
    group.limit_processor(None)
    group.limit_memory(60_000_000)
    found["too_much"] = holding(group, 100).wait(END_S_MAX)
    found["killed"] = group.killed()
    holds = holding(group, 30)
    group.limit_memory(15_000_000)  # it has more
    found["had_too_much"] = holds.wait(END_S_MAX)
    found["killed_again"] = group.killed()
    group.limit_memory(None)
    holds = holding(group, 100)
    holds.communicate("")
    found["unlimited"] = holds.returncode
    return found


if __name__ == "__main__":
    own = ControlGroup(mount_hierarchies(), group_name(sys.argv[1], "r0-server-0"))
    own.make()
    print(json.dumps(measured(own) if sys.argv[2] == "measure" else {}), flush=True)  # noqa: T201
    if sys.argv[2] == "hold":
        time.sleep(END_S_MAX)
