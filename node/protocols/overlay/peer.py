"""A node for an application: its requests wait in a queue until the node is active.

It is a machine like any other: `node.tcp.peer` runs it over TCP, `node.sim.flat_network` in virtual time.
Requests from outside an input are executed with its next one; `wake` is called to trigger it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from node.core import machine as m
from node.core.peers.peer_pool import PeerEffect, PeerInput
from node.protocols.overlay.node import OverlayNode
from node.protocols.reachability.nodes import NodeHandle

N = TypeVar("N", bound=OverlayNode)


class OverlayPeer(Generic[N]):
    """A node and the requests of an application."""

    def __init__(self, node: N, port: int) -> None:
        self.wake: Callable[[], None] = lambda: None
        self.port = port
        self.frame_limit_bytes = node.frame_limit_bytes
        self._node = node
        self._requests: deque[Callable[[], Any]] = deque()
        self._is_busy = False

    @property
    def node(self) -> NodeHandle:
        """Id and address of this node."""
        return self._node.overlay.own

    @property
    def layers(self) -> N:
        """The layers below, for inspection."""
        return self._node

    def handle(self, given: PeerInput, now_us: int) -> Sequence[PeerEffect]:
        """See `node.core.peers.peer_pool.PeerMachine`."""
        self._is_busy = True
        try:
            effects = list(self._node.handle(given, now_us))
            for _ in range(len(self._requests) if self._node.overlay.is_active else 0):
                effects += self._node.act(now_us, self._requests.popleft())
            return effects
        finally:
            self._is_busy = False

    def progress(self) -> m.NodeProgress:
        """See `node.core.peers.peer_pool.PeerMachine`."""
        return self._node.progress()

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        self._node.check()

    def _ask(self, request: Callable[[], Any]) -> None:
        self._requests.append(request)
        if not self._is_busy:
            self.wake()
