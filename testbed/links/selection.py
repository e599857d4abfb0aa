"""Selection of a run's link emulator: netem if the kernel supports it, otherwise the relay.

To find out whether the kernel supports netem, it is tried in new namespaces as the same user, because a
module may be present but forbidden, or loaded on demand.
"""

import os
import subprocess
from collections.abc import Sequence

from testbed.errors import MachineError
from testbed.links.emulator import LinkEmulator
from testbed.links.netem import NetemEmulator
from testbed.links.relay.controller import RelayEmulator
from testbed.sandbox.commands import sandbox_command
from testbed.sandbox.requirements import SANDBOX_TOOLS, missing_tools, search_path, user_namespace_needed

KINDS = ("auto", "netem", "relay")
TRY_TIMEOUT_S = 60.0
TRY_TOOLS = {**SANDBOX_TOOLS, "tc": "iproute2"}
TRY = ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
SEED_TRIED = 4711
TRY_SEED = ("sh", "-c", f"{' '.join(TRY)} seed {SEED_TRIED} && tc qdisc show dev lo")


def kernel_has_netem() -> bool:
    """Return whether a run on this machine could use netem. Works inside and outside of a sandbox."""
    return _why_no_netem() is None


def select_emulator(kind: str, seed: int) -> LinkEmulator:
    """Return the link emulator for a run.

    kind: "netem", "relay", or "auto" for netem if it works and otherwise the relay.
    seed: makes losses and jitter repeatable; netem picks its own seed if tc or the kernel does not support
    seeds. Raises MachineError if netem is requested and does not work here.
    """
    assert kind in KINDS, kind  # the plan is checked
    if kind == "relay":
        return RelayEmulator(seed)
    problem = _why_no_netem()
    if problem is None:
        return NetemEmulator(seed if netem_takes_seeds() else None)
    if kind == "auto":
        return RelayEmulator(seed)
    raise MachineError(
        f"links of kind netem do not work here: {problem}. Load the module (`sudo modprobe sch_netem`; on"
        " Ubuntu it is in linux-modules-extra-$(uname -r), Debian has it in linux-image-amd64 but not in its"
        " cloud kernels), or use --links relay"
    )


def netem_takes_seeds() -> bool:
    """Return whether tc and the kernel both support seeds (iproute2 and Linux 6.6).

    An older kernel ignores seeds, so the check sets one and reads it back.
    """
    result = _try(TRY_SEED)
    return isinstance(result, subprocess.CompletedProcess) and shows_seed(result.stdout)


def shows_seed(shown: str) -> bool:
    """Return whether `tc qdisc show` reports the seed of `TRY_SEED`."""
    return f"seed {SEED_TRIED}" in shown


def _try(command: Sequence[str]) -> subprocess.CompletedProcess[str] | str:
    """Run a command in a sandbox; returns its result, or why it could not be run."""
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
    """Return the kernel's error when a netem is created, or None if that works."""
    if missing := missing_tools(TRY_TOOLS):
        return f"not installed: {missing[0]}"
    result = _try(TRY)
    if isinstance(result, str):
        return result
    if result.returncode == 0:
        return None
    error = " ".join(result.stderr.split()).removeprefix("Error: ")
    return f"this kernel has no sch_netem ({error})" if "unknown" in error else error
