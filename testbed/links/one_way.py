"""The directions of links that another machine's middle shapes: here the kernel passes them on by itself.

Both ends are ports of a bridge that has no table and floods towards one of them only. What comes the other
way it does not forward; the relay takes that from a packet socket at the port, which hears a frame before
its bridge does. So relays see each frame of a link between machines once, where it is sent. Pure.

Sources: ip-link(8), packet(7), linux/net/core/dev.c (`__netif_receive_skb_core`).
"""

from collections.abc import Iterator, Sequence

from experiments.plan import Direction
from testbed.links.model import LinkWiring


def one_way_lines(wirings: Sequence[LinkWiring]) -> list[str]:
    """For `ip -batch`: make the bridges of those among them that have such a direction."""
    lines = []
    for name, wiring in _bridges(wirings):
        lines.append(f"link add {name} type bridge stp_state 0 mcast_snooping 0")
        lines.append(f"link set {name} up")
        to_a, to_b = Direction.BACKWARD not in wiring.shapes, Direction.FORWARD not in wiring.shapes
        for port, is_open in ((wiring.a_interface, to_a), (wiring.b_interface, to_b)):
            flood = "on" if is_open else "off"
            lines.append(f"link set {port} up master {name}")
            lines.append(
                f"link set {port} type bridge_slave learning off"
                f" flood {flood} mcast_flood {flood} bcast_flood {flood}"
            )
    return lines


def remove_lines(wirings: Sequence[LinkWiring]) -> list[str]:
    """For `ip -batch`: remove what `one_way_lines` made."""
    return [f"link del {name}" for name, _ in _bridges(wirings)]


def _bridges(wirings: Sequence[LinkWiring]) -> Iterator[tuple[str, LinkWiring]]:
    for number, wiring in enumerate(wirings):
        if len(wiring.shapes) < len(Direction):
            yield f"ow{number}", wiring
