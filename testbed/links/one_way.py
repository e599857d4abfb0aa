"""Link directions that are emulated on another machine: here the kernel forwards them unaltered.

Both ends are ports of a bridge that has no forwarding table and floods towards one of them only. Frames of
the other direction it does not forward; the relay receives them from a packet socket at the port, which sees
a frame before its bridge does. So relays see each frame of a link between machines once, where it is sent.
Pure.

Sources: ip-link(8), packet(7), linux/net/core/dev.c (`__netif_receive_skb_core`).
"""

from collections.abc import Iterator, Sequence

from experiments.plan import Direction
from testbed.links.emulator import LinkWiring


def one_way_lines(wirings: Sequence[LinkWiring]) -> list[str]:
    """The `ip -batch` lines that create the bridges of links with such a direction."""
    lines = []
    for name, wiring in _bridges(wirings):
        lines.append(f"link add {name} type bridge stp_state 0 mcast_snooping 0")
        lines.append(f"link set {name} up")
        to_a, to_b = Direction.BACKWARD not in wiring.parameters, Direction.FORWARD not in wiring.parameters
        for port, is_open in ((wiring.a_interface, to_a), (wiring.b_interface, to_b)):
            flood = "on" if is_open else "off"
            lines.append(f"link set {port} up master {name}")
            lines.append(
                f"link set {port} type bridge_slave learning off"
                f" flood {flood} mcast_flood {flood} bcast_flood {flood}"
            )
    return lines


def remove_lines(wirings: Sequence[LinkWiring]) -> list[str]:
    """The `ip -batch` lines that remove what `one_way_lines` created."""
    return [f"link del {name}" for name, _ in _bridges(wirings)]


def _bridges(wirings: Sequence[LinkWiring]) -> Iterator[tuple[str, LinkWiring]]:
    for number, wiring in enumerate(wirings):
        if len(wiring.parameters) < len(Direction):
            yield f"ow{number}", wiring
