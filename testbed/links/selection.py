"""Which kind of middle a run gets: netem where the kernel has it, otherwise the relay.

Whether the kernel has netem is found out by trying, in namespaces of its own and as whoever runs this,
because a module may be there but forbidden, or loaded on demand.
"""

import os
import subprocess
from collections.abc import Sequence

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
SEED_TRIED = 4711
TRY_SEED = ("sh", "-c", f"{' '.join(TRY)} seed {SEED_TRIED} && tc qdisc show dev lo")


def kernel_has_netem() -> bool:
    """Whether a run here could use netem. Works in a sandbox and outside of one."""
    return _why_no_netem() is None


def select_middles(kind: str, seed: int) -> Middles:
    """The middles for a run.

    kind: "netem", "relay", or "auto" for netem where it works and otherwise the relay.
    seed: makes losses and jitter repeatable; netem draws its own where tc or the kernel knows no seeds.
    Raises MachineError if netem is asked for and does not work here.
    """
    assert kind in KINDS, kind  # noqa: S101 (the plan is checked)
    if kind == "relay":
        return RelayMiddles(seed)
    problem = _why_no_netem()
    if problem is None:
        return NetemMiddles(seed if netem_takes_seeds() else None)
    if kind == "auto":
        return RelayMiddles(seed)
    raise MachineError(
        f"links of kind netem do not work here: {problem}. Load the module (`sudo modprobe sch_netem`; on"
        " Ubuntu it is in linux-modules-extra-$(uname -r), Debian has it in linux-image-amd64 but not in its"
        " cloud kernels), or use --links relay"
    )


def netem_takes_seeds() -> bool:
    """Whether tc and the kernel both know seeds (iproute2 and Linux 6.6): an older kernel ignores them, so it
    is asked what it made of one.
    """
    result = _try(TRY_SEED)
    return isinstance(result, subprocess.CompletedProcess) and says_seed(result.stdout)


def says_seed(shown: str) -> bool:
    """Whether the kernel has the seed of `TRY_SEED`, by what `tc qdisc show` says."""
    return f"seed {SEED_TRIED}" in shown


def _try(command: Sequence[str]) -> subprocess.CompletedProcess[str] | str:
    """What came of a command in a sandbox, or why it could not be tried."""
    try:
        return subprocess.run(
            sandbox_command(command, user_namespace=user_namespace_needed()),
            capture_output=True,
            text=True,
            timeout=TRY_TIMEOUT_S,
            check=False,
            env={**os.environ, "PATH": search_path(os.environ)},
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def _why_no_netem() -> str | None:
    """What the kernel says when it is asked for a netem, or None if it makes one."""
    if missing := missing_tools(TRY_TOOLS):
        return f"not installed: {missing[0]}"
    result = _try(TRY)
    if isinstance(result, str):
        return result
    if result.returncode == 0:
        return None
    said = " ".join(result.stderr.split()).removeprefix("Error: ")
    return f"this kernel has no sch_netem ({said})" if "unknown" in said else said
