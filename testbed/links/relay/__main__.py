"""`python -m testbed.links.relay DESCRIPTOR`: the relay process, under orders from that socket."""

import resource
import select
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from random import Random
from typing import Any, TypeVar

from testbed.links.relay.lan_switch import LanSwitch
from testbed.links.relay.lane import Hold, Lane
from testbed.links.relay.loop import Loop
from testbed.links.relay.orders import Line, shape_from_json
from testbed.links.relay.port import Outlet, Port
from testbed.links.relay.priority import be_prompt
from testbed.links.relay.ring_sizes import port_blocks
from testbed.links.relay.together import together
from testbed.links.relay.way import Way


def build_ways(order: dict[str, Any], hold: Hold, stack: ExitStack) -> list[Way]:
    """Open the ends of every link and join them by lanes, in the directions that have a shape.

    Raises OSError, naming the interface.
    """
    lanes = [
        (link["name"], direction, link[source], link[sink], shape_from_json(link["shapes"][direction]))
        for link in order["links"]
        for direction, source, sink in (("forward", "a", "b"), ("backward", "b", "a"))
        if direction in link["shapes"]
    ]
    rates = {source: shape.rate_bits_per_s for _, _, source, _, shape in lanes}
    sources = dict(zip(rates, port_blocks(list(rates.values())), strict=True))
    silent = dict.fromkeys(sink for _, _, _, sink, _ in lanes if sink not in sources)
    ports = _opened(lambda interface: Port(interface, sources[interface]), sources, stack)
    outlets = _opened(Outlet, silent, stack)
    ways = []
    for name, direction, source, sink, shape in lanes:
        out = ports[sink].out if sink in ports else outlets[sink].out
        random = Random(f"{order['seed']}/{name}/{direction}")  # noqa: S311  loss, not secrets
        ways.append(Way(name, direction, ports[source], Lane(out, shape, random, hold), hold))
    return ways


End = TypeVar("End", Port, Outlet)


def _opened(open_end: Callable[[str], End], interfaces: Iterable[str], stack: ExitStack) -> dict[str, End]:
    def open_named(interface: str) -> End:
        try:
            return open_end(interface)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror} (opening {interface})") from error

    names = list(interfaces)
    ends = together(open_named, names)
    stack.callback(together, lambda end: end.close(), ends)
    return dict(zip(names, ends, strict=True))


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
        loop = Loop(ways, LanSwitch(order["links"], ways), hold, line)
        line.say({"did": "start", "scheduling": be_prompt()})
        loop.run(poll)
        return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
