"""Rules that keep some of the packets that a host sends, in nftables (nft(8)): one table for each fault.

They are kept where they are sent, before captures see them: so what a capture shows has left its host, and
what one shows at its destination has come to its process. A table is its fault's alone: rules of several
faults add up, and each goes with its table.
"""

import subprocess
from collections.abc import Sequence

from experiments.planned.changes import ProcessChange
from testbed.errors import MachineError, TestbedError

TIMEOUT_S = 10.0
CONNECTING = "tcp flags & (syn | ack) == syn"


def begin(change: ProcessChange, addresses: Sequence[str]) -> str:
    """The script that keeps packets to these addresses, as far as the change means them."""
    kept = f"ip daddr {{ {', '.join(addresses)} }}"
    of_ports = [f"th {end} {change.port}" for end in ("sport", "dport")] if change.port is not None else [""]
    rules = []
    for of_port in of_ports:
        protocol = "meta l4proto { tcp, udp }" if of_port else ""
        if change.refuse:
            connecting = CONNECTING if change.new else ""
            rules.append(_words(kept, "meta l4proto tcp", of_port, connecting, "reject with tcp reset"))
        rules.append(_words(kept, CONNECTING if change.new else protocol, of_port, "drop"))
    lines = "; ".join(["type filter hook output priority 0", *rules])
    return f"table ip {_table(change)} {{ chain kept {{ {lines}; }}; }}\n"


def end(change: ProcessChange) -> str:
    """The script that lets them go again."""
    return f"delete table ip {_table(change)}\n"


def carry_out(script: str) -> None:
    """Carry a script out in the network namespace of the calling thread. Raises TestbedError."""
    try:
        done = subprocess.run(
            ["nft", "-f", "-"], input=script, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise MachineError("`nft` is not installed (Debian and Ubuntu: package nftables)") from None
    except subprocess.TimeoutExpired:
        raise TestbedError(f"`nft` took more than {TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise TestbedError(f"nft: {' '.join(done.stderr.split())}")


def _table(change: ProcessChange) -> str:
    return f"fault-{change.rule}"


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)
