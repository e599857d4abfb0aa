"""Reset of TCP connections of the calling thread's network namespace, by `ss --kill` (ss(8)).

The kernel closes the socket as after an error (ECONNABORTED) and sends the other end a RST (RFC 9293,
3.10.5). It needs CONFIG_INET_DIAG_DESTROY; without it, it silently does nothing.
"""

from collections.abc import Sequence

from testbed.batches import run_tool
from testbed.errors import TestbedError


def reset_connections(peers: Sequence[str], port: int | None) -> int:
    """Reset the established connections with any of these addresses (all, if none are given).

    port: only connections from or to this port. Returns the number of connections. Raises TestbedError.
    """
    chosen = connection_filter(peers, port)
    established = len(_listed([], chosen))
    reset = len(_listed(["--kill"], chosen))
    if established and not reset:
        raise TestbedError(
            f"none of {established} connections could be reset: this kernel lacks CONFIG_INET_DIAG_DESTROY"
        )
    return reset


def connection_filter(peers: Sequence[str], port: int | None) -> list[str]:
    """Return the filter arguments for ss(8)."""
    either = [
        [f"dst {peer}" for peer in peers],
        [f"{end} = :{port}" for end in ("sport", "dport")] if port is not None else [],
    ]
    return [" and ".join(f"( {' or '.join(each)} )" for each in either if each)] if any(either) else []


def _listed(options: Sequence[str], chosen: Sequence[str]) -> list[str]:
    fixed = ("--no-header", "--numeric", "--tcp")
    return run_tool("ss", *fixed, *options, "state", "established", *chosen, package="iproute2").splitlines()
