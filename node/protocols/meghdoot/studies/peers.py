"""Meghdoot peers in a flat network: complete nodes that a study makes subscribe and publish.

Without heartbeats and confirmations, as in the paper's simulator, unless a study enables them; so the network
is quiet between two actions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from node.core.content import stock_quotes
from node.core.content.content import Range, attributes_of
from node.core.content.value_distributions import Floats
from node.core.machine import Randomness
from node.core.peers.peer_pool import Address
from node.core.specification import PlannedSubscription as Asked
from node.core.study import StudyContext
from node.protocols.meghdoot.node import MeghdootNode
from node.protocols.overlay.node import unplanned_spec
from node.sim.flat_network import EffectObserver, FlatNetwork

HOP_US = 1_000
LONG_US = 1 << 50
"""Longer than any study takes."""
QUIET_US = 60_000_000
"""Longer than any action takes."""
EVENT_BYTES = 56
"""One double for each of seven attributes."""
SILENT: Mapping[str, Any] = {
    "heartbeat_us": 0,
    "tick_us": LONG_US,
    "load_us": 0,
    "refresh_us": LONG_US,
    "expire_us": 4 * LONG_US,
    "delivery": "best-effort",
    "mirror": False,
}


def quotes(uniform: bool, file: str, given: StudyContext) -> tuple[dict[str, Any], Floats | None]:
    """Return the paper's workload (5.1) and, if a file with quotes is given, its rows."""
    workload = stock_quotes.workload(uniform=uniform)
    if not file:
        return workload, None
    return {**workload, "events": {"source": "rows"}}, given.rows(file, attributes_of(workload))


class Peers:
    """All peers by address. Addresses count from 1 in the order of joins."""

    def __init__(
        self,
        workload: Mapping[str, Any],
        rng: Randomness,
        parameters: Mapping[str, Any],
        on_effect: EffectObserver | None = None,
        *,
        quiet_us: int = QUIET_US,
        notified: bool = True,
    ) -> None:
        """Create an empty network.

        quiet_us: maximum duration of an action. notified: whether events are matched and notified.
        """
        self.nodes: dict[Address, MeghdootNode] = {}
        self.network = FlatNetwork(lambda source, target: HOP_US, *((on_effect,) if on_effect else ()))
        self._workload, self._rng = workload, rng
        self._parameters = {**SILENT, **parameters}
        self._notified = notified
        self._asked, self._came, self._quiet_us = 0, 0, quiet_us

    def create(self, contacts: Sequence[Address]) -> tuple[Address, MeghdootNode]:
        """Return a new peer, which is not yet in the network, and its address."""
        self._came += 1
        address = self._came
        name, given = f"peer-{address}", {"parameters": self._parameters, "workload": self._workload}
        spec = unplanned_spec("meghdoot", "peer", name, address, contacts=contacts, **given)
        node = MeghdootNode(spec, self._rng)
        node.broker.notification.is_enabled = self._notified
        return address, node

    def join(self) -> Address:
        """Make a new peer join through a random one."""
        address, node = self.create((self.anyone(),) if self.nodes else ())
        self.network.start(address, node)
        self.settle()
        self.nodes[address] = node
        return address

    def anyone(self) -> Address:
        """Return a random existing peer."""
        while True:
            address = self._rng.randrange(self._came) + 1
            if address in self.nodes:
                return address

    def kill(self, address: Address) -> None:
        """Kill a peer without notice."""
        del self.nodes[address]
        self.network.kill(address)

    def subscribe(self, ranges: Sequence[Range]) -> Address:
        """Make a random peer subscribe; return its address."""
        asked, address = Asked(0, self._asked, True, tuple(ranges)), self.anyone()
        self._asked += 1
        self.network.act(address, lambda node: node.broker.subscriber.subscribe(asked))
        self.settle()
        return address

    def publish(self, address: Address, values: Sequence[float]) -> int:
        """Make a peer publish on its own stream; return the event's number."""
        numbers: list[int] = []
        self.network.act(address, lambda node: numbers.append(node.publish(address, values, EVENT_BYTES)))
        return numbers[0]

    def look_round(self) -> None:
        """Make every peer execute its periodic work and send its load to neighbours."""

        def look(node: MeghdootNode) -> None:
            node.broker.tick()
            node.broker.load.send_load()

        for address in self.nodes:
            self.network.act(address, look)
        self.settle()

    def settle(self, us: int = 0) -> None:
        """Run until all pending work has ended, or for the given time."""
        self.network.run(self.network.clock.now_us + (us or self._quiet_us))
