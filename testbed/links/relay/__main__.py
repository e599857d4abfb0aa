"""`python -m testbed.links.relay DESCRIPTOR`: the relay process, under orders from that socket."""

import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from random import Random
from typing import Any

from testbed.links.relay.hold import Hold
from testbed.links.relay.lane import Lane
from testbed.links.relay.loop import Loop, Way
from testbed.links.relay.orders import Line, shape_from_json
from testbed.links.relay.port import Port
from testbed.links.relay.priority import be_prompt

RINGS_MIB_MAX = 384  # memory for the receive rings of all links together
RING_MIB_MIN, RING_MIB_MAX = 1, 4  # of one: 15 to 60 large frames, 512 to 2048 small ones
RINGS_PER_LINK = 4


def ring_mib(links: int) -> int:
    """The size of each ring, in MiB, such that those of `links` links stay within `RINGS_MIB_MAX`."""
    return max(RING_MIB_MIN, min(RING_MIB_MAX, RINGS_MIB_MAX // (RINGS_PER_LINK * max(1, links))))


def build_ways(order: dict[str, Any], hold: Hold, stack: ExitStack) -> Iterable[Way]:
    """Open every link's ports and join them by two lanes. Raises OSError, naming the interface."""
    mib = ring_mib(len(order["links"]))
    for link in order["links"]:
        a, b = (_open(link[side], mib, stack) for side in ("a", "b"))
        for direction, source, sink in (("forward", a, b), ("backward", b, a)):
            random = Random(f"{order['seed']}/{link['name']}/{direction}")  # noqa: S311  loss, not secrets
            lane = Lane(sink.out, shape_from_json(link[direction]), random, hold)
            yield Way(link["name"], direction, source, lane)


def _open(interface: str, mib: int, stack: ExitStack) -> Port:
    try:
        port = Port(interface, mib)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} (opening {interface})") from error
    stack.callback(port.close)
    return port


def main(descriptor: int) -> int:
    """Serve one run. Returns the exit code."""
    with ExitStack() as stack:
        line = Line(socket.socket(fileno=descriptor))
        stack.callback(line.close)
        order = line.hear()
        if order is None:
            return 0
        hold = Hold()
        try:
            ways = list(build_ways(order, hold, stack))
        except OSError as error:
            line.say({"error": str(error)})
            return 1
        loop = Loop(ways, hold, line)
        line.say({"did": "start", "scheduling": be_prompt()})
        loop.run()
        return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
