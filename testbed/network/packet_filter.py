"""Rules that block some of the packets that a host sends, in nftables (nft(8)): one table for each fault.

Packets are blocked at the sender, before captures see them: a packet in a capture has left its host, and a
packet in a capture at its destination has reached its process. Each fault has its own table: rules of several
faults add up, and removing a table removes the rules of its fault.
"""

from collections.abc import Sequence

from experiments.planned.changes import ProcessChange
from testbed.batches import run_tool

CONNECTING = "tcp flags & (syn | ack) == syn"


def block_script(change: ProcessChange, addresses: Sequence[str]) -> str:
    """Return the script that blocks the packets to these addresses that the change selects."""
    blocked = f"ip daddr {{ {', '.join(addresses)} }}"
    of_ports = [f"th {end} {change.port}" for end in ("sport", "dport")] if change.port is not None else [""]
    rules = []
    for of_port in of_ports:
        protocol = "meta l4proto { tcp, udp }" if of_port else ""
        if change.refuse:
            connecting = CONNECTING if change.new else ""
            rules.append(_joined(blocked, "meta l4proto tcp", of_port, connecting, "reject with tcp reset"))
        rules.append(_joined(blocked, CONNECTING if change.new else protocol, of_port, "drop"))
    lines = "; ".join(["type filter hook output priority 0", *rules])
    return f"table ip {_table(change)} {{ chain kept {{ {lines}; }}; }}\n"


def unblock_script(change: ProcessChange) -> str:
    """Return the script that unblocks them."""
    return f"delete table ip {_table(change)}\n"


def execute(script: str) -> None:
    """Run a script in the network namespace of the calling thread. Raises TestbedError, MachineError."""
    run_tool("nft", "-f", "-", package="nftables", text=script)


def _table(change: ProcessChange) -> str:
    return f"fault-{change.rule}"


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)
