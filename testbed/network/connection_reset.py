"""Resets TCP connections of the calling thread's network namespace, by `ss --kill` (ss(8)).

The kernel closes the socket as after an error (ECONNABORTED) and sends the other end a RST (RFC 9293,
3.10.5). It needs CONFIG_INET_DIAG_DESTROY, and does silently nothing without.
"""

import subprocess
from collections.abc import Sequence

from testbed.errors import MachineError, TestbedError

TIMEOUT_S = 10.0


def reset_connections(peers: Sequence[str], port: int | None) -> int:
    """Reset the connections that stand with any of these addresses (all, if none are given), from or to
    `port` if it is given. Returns how many. Raises TestbedError.
    """
    chosen = connection_filter(peers, port)
    there = len(_listed([], chosen))
    done = len(_listed(["--kill"], chosen))
    if there and not done:
        raise TestbedError(
            f"none of {there} connections could be reset: this kernel does not (CONFIG_INET_DIAG_DESTROY)"
        )
    return done


def connection_filter(peers: Sequence[str], port: int | None) -> list[str]:
    """The filter of ss(8)."""
    either = [
        [f"dst {peer}" for peer in peers],
        [f"{end} = :{port}" for end in ("sport", "dport")] if port is not None else [],
    ]
    return [" and ".join(f"( {' or '.join(each)} )" for each in either if each)] if any(either) else []


def _listed(options: Sequence[str], chosen: Sequence[str]) -> list[str]:
    command = ["ss", "--no-header", "--numeric", "--tcp", *options, "state", "established", *chosen]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise MachineError("`ss` is not installed (Debian and Ubuntu: package iproute2)") from None
    except subprocess.TimeoutExpired:
        raise TestbedError(f"`ss` took more than {TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise TestbedError(f"ss: {' '.join(done.stderr.split())}")
    return done.stdout.splitlines()
