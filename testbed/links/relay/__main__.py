"""`python -m testbed.links.relay DESCRIPTOR`: the relay process, under orders from that socket."""

import resource
import select
import socket
import sys
from contextlib import ExitStack
from random import Random
from typing import Any

from testbed.links.relay.hold import Hold
from testbed.links.relay.lane import Lane
from testbed.links.relay.loop import Loop, Way
from testbed.links.relay.orders import Line, shape_from_json
from testbed.links.relay.port import Port
from testbed.links.relay.priority import be_prompt
from testbed.links.relay.ring import BLOCK_BYTES
from testbed.links.relay.together import together

RINGS_BYTES_MAX = 256 << 20  # for all receive rings; fresh memory costs up to 4 ms a MiB on a virtual machine
PORT_BLOCKS_MIN, PORT_BLOCKS_MAX = 2, 16


def port_blocks(ports: int) -> int:
    """How many blocks each of so many ports gets, such that all stay within `RINGS_BYTES_MAX`.

    Each gets `PORT_BLOCKS_MIN` in any case: more than 128 ports take more.
    """
    return max(PORT_BLOCKS_MIN, min(PORT_BLOCKS_MAX, RINGS_BYTES_MAX // BLOCK_BYTES // max(1, ports)))


def build_ways(order: dict[str, Any], hold: Hold, stack: ExitStack) -> list[Way]:
    """Open every link's ports and join them by two lanes. Raises OSError, naming the interface."""
    interfaces = [link[side] for link in order["links"] for side in ("a", "b")]
    blocks = port_blocks(len(interfaces))
    opened = together(lambda interface: _open(interface, blocks), interfaces)
    stack.callback(together, Port.close, opened)
    port = dict(zip(interfaces, opened, strict=True))
    ways = []
    for link in order["links"]:
        a, b = port[link["a"]], port[link["b"]]
        for direction, source, sink in (("forward", a, b), ("backward", b, a)):
            random = Random(f"{order['seed']}/{link['name']}/{direction}")  # noqa: S311  loss, not secrets
            lane = Lane(sink.out, shape_from_json(link[direction]), random, hold)
            ways.append(Way(link["name"], direction, source, lane))
    return ways


def _open(interface: str, blocks: int) -> Port:
    try:
        return Port(interface, blocks)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} (opening {interface})") from error


def main(descriptor: int) -> int:
    """Serve one run. Returns the exit code."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ExitStack() as stack:
        poll = stack.enter_context(select.epoll())  # first: `select` takes no descriptor above 1023
        line = Line(socket.socket(fileno=descriptor))
        stack.callback(line.close)
        order = line.hear()
        if order is None:
            return 0
        hold = Hold()
        try:
            ways = build_ways(order, hold, stack)
        except OSError as error:
            line.say({"error": str(error)})
            return 1
        loop = Loop(ways, hold, line)
        line.say({"did": "start", "scheduling": be_prompt()})
        loop.run(poll)
        return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
