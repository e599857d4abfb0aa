"""Decides whether this user may create the namespaces of a sandbox, and if not, what to do.

Reads the kernel's settings; tries nothing and changes nothing.
"""

from pathlib import Path

from testbed.errors import MachineError
from testbed.sandbox.commands import needs_user_namespace


def effective_capabilities() -> int:
    """CapEff of this process (proc(5))."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def user_namespace_needed() -> bool:
    """Whether a sandbox of this user needs a user namespace of its own."""
    return needs_user_namespace(effective_capabilities())


def why_forbidden(sysctls: Path = Path("/proc/sys")) -> str | None:
    """Why an ordinary user may not create namespaces here and what to do about it, or None if no setting
    forbids it.

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
            "ordinary users may not make namespaces here: "
            "`sudo sysctl kernel.unprivileged_userns_clone=1`, or run as root"
        )
    if _read_switch(sysctls / "kernel/apparmor_restrict_unprivileged_userns") == 1:
        return (
            "AppArmor keeps ordinary users from making namespaces here (Ubuntu 24.04's default): "
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or run as root"
        )
    return None


def failed_to_start(stderr: str) -> MachineError:
    """The error for a sandbox that did not start, from the standard error of its commands."""
    said = " ".join(stderr.split()) or "no reason given"
    advice = why_forbidden() if user_namespace_needed() else None
    if advice is None and "permitted" in said:
        advice = (
            "the kernel forbids namespaces to this process (a container?): run on the machine itself, "
            "or give the container --privileged"
        )
    return MachineError(f"cannot make a sandbox: {advice or 'see the reason'} [{said}]")


def _read_switch(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None  # the kernel has no such switch
