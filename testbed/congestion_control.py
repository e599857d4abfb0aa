"""TCP's congestion control of a run: an experiment's `congestion_control`, or the machine's default."""

from pathlib import Path

from experiments.planned.plan import Plan
from testbed.errors import MachineError

SYSCTLS = Path("/proc/sys/net/ipv4")


def default() -> str:
    """Return this machine's congestion control. Raises OSError."""
    return (SYSCTLS / "tcp_congestion_control").read_text().strip()


def allowed() -> list[str]:
    """Return the congestion controls that a sandbox may choose on this machine. Raises OSError.

    Only the first network namespace may choose others (Linux, `tcp_set_default_congestion_control`).
    """
    return (SYSCTLS / "tcp_allowed_congestion_control").read_text().split()


def check(plan: Plan) -> None:
    """Raise MachineError if the plan's congestion control is not allowed on this machine."""
    asked = plan.congestion_control
    try:
        known = allowed()
    except OSError:
        return  # the runner compares the one in use with the plan
    if asked is not None and asked not in known:
        raise MachineError(
            f"congestion_control: {asked} is not allowed on this machine (allowed: {', '.join(known)}): "
            f"choose one of these with --set congestion_control={known[0]}, or allow it as root with "
            f"sysctl -w net.ipv4.tcp_allowed_congestion_control='{' '.join([*known, asked])}'"
        )
