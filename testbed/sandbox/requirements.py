"""Requirements of sandboxes on the machine and its user: programs, and permission to create namespaces.

The module reads PATH and the kernel's settings; it installs, tries and changes nothing. Debian installs some
programs (`bridge`, `tc`) in directories that an ordinary user's PATH lacks, although every user may run them:
these directories are always searched too, here and inside sandboxes.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from experiments.child_python import absolute_entries
from testbed.errors import MachineError

CAPABILITIES_NEEDED = {"net_admin": 12, "net_raw": 13, "sys_admin": 21}
"""Capabilities that namespaces, links and captures need, with bit numbers (capabilities(7)).

A user namespace grants them.
"""
SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")

SANDBOX_TOOLS = {"setpriv": "util-linux", "unshare": "util-linux", "mount": "mount", "ip": "iproute2"}
"""Programs that create a sandbox, and their Debian packages."""
RUN_TOOLS = {
    **SANDBOX_TOOLS,
    "nsenter": "util-linux",
    "bridge": "iproute2",
    "mnexec": "mininet",
    "tcpdump": "tcpdump",
}
"""Programs that a run needs, and their Debian packages."""


def search_path(environment: Mapping[str, str]) -> str:
    """Return PATH without relative entries, followed by the directories of system programs."""
    entries = absolute_entries(environment.get("PATH", os.defpath))
    return os.pathsep.join([*filter(None, [entries]), *SYSTEM_DIRECTORIES])


def missing_tools(tools: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the programs that are not found, each with the package to install."""
    path = search_path(environment)
    return [
        f"`{tool}` (Debian and Ubuntu: package {package})"
        for tool, package in tools.items()
        if shutil.which(tool, path=path) is None
    ]


def check_tools(tools: Mapping[str, str]) -> None:
    """Check that these programs are installed. Raises MachineError with the packages to install."""
    missing = missing_tools(tools)
    if missing:
        raise MachineError(f"not installed: {', '.join(missing)}")


def needs_user_namespace(effective_capabilities: int) -> bool:
    """Return whether a process with this CapEff (/proc/self/status) has to create a user namespace."""
    return any(not effective_capabilities >> bit & 1 for bit in CAPABILITIES_NEEDED.values())


def effective_capabilities() -> int:
    """Return CapEff of this process (proc(5))."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def user_namespace_needed() -> bool:
    """Return whether a sandbox of this user needs its own user namespace."""
    return needs_user_namespace(effective_capabilities())


def has_other_users() -> bool:
    """Return whether a sandbox's programs can run as other users than its own, inside and outside of it.

    A user namespace of a sandbox has a single user (user_namespaces(7)).
    """
    counts = [int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return sum(counts) > 1 and not user_namespace_needed()


def why_forbidden(sysctls: Path = Path("/proc/sys")) -> str | None:
    """Return which setting forbids ordinary users to create namespaces, and the remedy; None if none does.

    `sysctls` is the folder of the kernel's settings. Sources: user_namespaces(7), Ubuntu's AppArmor release
    notes for 23.10 and 24.04, Debian's kernel patch for unprivileged_userns_clone.
    """
    if _read_switch(sysctls / "user/max_user_namespaces") == 0:
        return (
            "user namespaces are switched off here: "
            "`sudo sysctl user.max_user_namespaces=10000`, or run as root"
        )
    if _read_switch(sysctls / "kernel/unprivileged_userns_clone") == 0:
        return (
            "ordinary users may not create namespaces here: "
            "`sudo sysctl kernel.unprivileged_userns_clone=1`, or run as root"
        )
    if _read_switch(sysctls / "kernel/apparmor_restrict_unprivileged_userns") == 1:
        return (
            "AppArmor keeps ordinary users from creating namespaces here (Ubuntu 24.04's default): "
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or run as root"
        )
    return None


def failed_to_start(stderr: str) -> MachineError:
    """Return the error for a sandbox that did not start, from the standard error of its commands."""
    reason = " ".join(stderr.split()) or "no reason given"
    advice = why_forbidden() if user_namespace_needed() else None
    if advice is None and "permitted" in reason:
        advice = (
            "the kernel forbids namespaces to this process (a container?): run on the machine itself, "
            "or give the container --privileged"
        )
    return MachineError(f"cannot create a sandbox: {advice or 'see the reason'} [{reason}]")


def _read_switch(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None  # the kernel has no such switch
