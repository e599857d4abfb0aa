"""Runs a machine that reaches its peers by address within an application, over TCP and asyncio.

    async with serve(peer, codec, "127.0.0.2"):
        ...                                 # the peer takes part; what it is asked for is done at once

Each peer of a machine has an address of its own, by which the others know it; 127.0.0.1, 127.0.0.2 and so on
will do on one host.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from node.core import machine as m
from node.core.message_layout import Codec
from node.core.peers.peer_pool import PeerMachine, PeerPool
from node.tcp.adapter import Adapter


class ServedPeer(PeerMachine, Protocol):
    """A machine that says when an application has asked something of it."""

    port: int
    wake: Callable[[], None]


class _Silent:
    """Surroundings without files: an application has its own."""

    def __init__(self) -> None:
        self.is_ready = asyncio.Event()

    def log(self, line: m.Log) -> None:
        """An application has its own log."""

    def record(self, data: bytes) -> None:
        """Nothing is put on record."""

    def beside(self, suffix: str, data: bytes) -> None:
        """Nor measured."""

    def ready(self) -> None:
        """The machine takes part."""
        self.is_ready.set()


@asynccontextmanager
async def serve(peer: ServedPeer, codec: Codec, address: str) -> AsyncIterator[None]:
    """Let a peer take part as long as this lasts; it is entered when the peer has joined the others."""
    surroundings = _Silent()
    adapter = Adapter(PeerPool(peer, peer.port), codec, address, surroundings, dials_from_address=True)
    peer.wake = partial(adapter.give, m.Nudge())
    adapter.start()
    try:
        await surroundings.is_ready.wait()
        yield
    finally:
        peer.wake = lambda: None
        adapter.give(m.Finish())
        await adapter.close()
