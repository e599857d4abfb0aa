"""Which kind of middle a run gets: netem where the kernel has it, otherwise the relay.

Whether the kernel has netem is found out by trying, in namespaces of its own and as whoever runs this,
because a module may be there but forbidden, or loaded on demand.
"""

import os
import subprocess

from testbed.errors import MachineError
from testbed.links.model import Middles
from testbed.links.netem import NetemMiddles
from testbed.links.relay.client import RelayMiddles
from testbed.sandbox.commands import sandbox_command
from testbed.sandbox.permission import user_namespace_needed
from testbed.sandbox.tools import SANDBOX_TOOLS, missing_tools, search_path

KINDS = ("auto", "netem", "relay")
TRY_TIMEOUT_S = 60.0
TRY_TOOLS = {**SANDBOX_TOOLS, "tc": "iproute2"}
TRY = ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")


def kernel_has_netem() -> bool:
    """Whether a run here could use netem. Works in a sandbox and outside of one."""
    return _why_no_netem() is None


def select_middles(kind: str, seed: int) -> Middles:
    """The middles for a run.

    kind: "netem", "relay", or "auto" for netem where it works and otherwise the relay.
    seed: makes the relay's losses and jitter repeatable; netem draws its own.
    Raises MachineError if netem is asked for and does not work here.
    """
    assert kind in KINDS, kind  # noqa: S101 (the plan is checked)
    if kind == "relay":
        return RelayMiddles(seed)
    problem = _why_no_netem()
    if problem is None:
        return NetemMiddles()
    if kind == "auto":
        return RelayMiddles(seed)
    raise MachineError(
        f"links of kind netem do not work here: {problem}. Load the module (`sudo modprobe sch_netem`; on"
        " Ubuntu it is in linux-modules-extra-$(uname -r), Debian has it in linux-image-amd64 but not in its"
        " cloud kernels), or use --links relay"
    )


def _why_no_netem() -> str | None:
    """What the kernel says when it is asked for a netem, or None if it makes one."""
    if missing := missing_tools(TRY_TOOLS):
        return f"not installed: {missing[0]}"
    command = sandbox_command(TRY, user_namespace=user_namespace_needed())
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TRY_TIMEOUT_S,
            check=False,
            env={**os.environ, "PATH": search_path(os.environ)},
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if result.returncode == 0:
        return None
    said = " ".join(result.stderr.split()).removeprefix("Error: ")
    return f"this kernel has no sch_netem ({said})" if "unknown" in said else said
