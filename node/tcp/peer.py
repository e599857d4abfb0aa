"""Runs a machine that reaches its peers by address within an application, over TCP and asyncio.

  async with serve(peer, codec, "127.0.0.2"):
      ...                                 # the peer takes part; requests are executed at once

Each peer needs an address of its own, by which the others know it; on one host, for example, 127.0.0.1,
127.0.0.2 and so on.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from node.core import machine as m
from node.core.message_layout import Codec
from node.core.peers.peer_pool import PeerMachine, PeerPool
from node.tcp.adapter import Adapter, ApplicationOutputs


class ServedPeer(PeerMachine, Protocol):
    """A machine that reports requests of an application."""

    port: int
    wake: Callable[[], None]


@asynccontextmanager
async def serve(peer: ServedPeer, codec: Codec, address: str) -> AsyncIterator[None]:
    """Run a peer during the context, which is entered when the peer has joined the others."""
    outputs = ApplicationOutputs()
    adapter = Adapter(PeerPool(peer, peer.port), codec, address, outputs, dials_from_address=True)
    peer.wake = partial(adapter.give, m.Nudge())
    adapter.start()
    try:
        await outputs.is_ready.wait()
        yield
    finally:
        peer.wake = lambda: None
        adapter.give(m.Finish())
        await adapter.close()
