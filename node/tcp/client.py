"""The client interface of the paper (2.1) for applications: `publish(event)` and `get_event()`, over asyncio.

  async with connect(spec) as client:
      await client.publish(b"...")         # returns when the event is published
      event = await client.get_event()     # data, garbage collection or tombstone, in the stream's order

The `Client` machine implements the protocol; this class only waits for results. Events published by
concurrent tasks share a batch. The number of events sent to an application that does not take them is
bounded.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random

from node.core import machine as m
from node.core.errors import LocalProtocolError
from node.core.specification import NodeSpec
from node.protocols.sprinkler.messages import CODEC, Predicate
from node.protocols.sprinkler.region.application import DeliveredEvent, Rejection
from node.protocols.sprinkler.region.client import Client
from node.tcp.adapter import Adapter, ApplicationOutputs

Waiting = tuple[int, asyncio.Future[None]]
"""Number of a request, and the future that waits for it."""


class SprinklerClient:
    """A client of its region's proxy. Created by `connect`."""

    def __init__(self, machine: Client, adapter: Adapter) -> None:
        self._machine = machine
        self._adapter = adapter
        self._waiting: dict[int, deque[Waiting]] = {}  # by stream
        self._events: Iterator[DeliveredEvent] = iter(())  # of the current batch
        self._arrived = asyncio.Event()
        self._flushing = False

    async def publish(
        self,
        event: bytes,
        predicate: Predicate = Predicate.NONE,
        argument: int = 0,
        stream: int | None = None,
    ) -> None:
        """Publish on a stream of any region; returns when the whole chain of its proxy has the event (paper
        2.1, 2.2).

        stream: default: the first of the client's own region. With a predicate it is a garbage collection
        event (3.4); see `messages.Predicate` for the argument. Raises LocalProtocolError if the stream does
        not exist, if the event is too large for a batch, or if the proxy rejects it permanently, such as an
        event that would undo an earlier collection.
        """
        request = self._machine.publish(event, predicate, argument, stream)
        done = asyncio.get_running_loop().create_future()
        stream = self._machine.own_stream if stream is None else stream
        self._waiting.setdefault(stream or 0, deque()).append((request, done))
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)
        await done

    async def get_event(self) -> DeliveredEvent:
        """Return the next event of any stream, each stream in its order."""
        while (event := next(self._events, None)) is None:
            await self._next_batch()
        return event

    def wake_waiting(self) -> None:
        """Wake waiting tasks after each input of the machine."""
        while self._machine.rejections:
            self._reject(self._machine.rejections.popleft())
        for stream, waiting in self._waiting.items():
            published = self._machine.published_requests(stream)
            while waiting and waiting[0][0] <= published:
                _, done = waiting.popleft()
                if not done.done():
                    done.set_result(None)
        self._arrived.set()

    def _reject(self, rejection: Rejection) -> None:
        """Fail the requests of a rejection."""
        waiting = self._waiting.pop(rejection.stream, deque())
        self._waiting[rejection.stream] = kept = deque[Waiting]()
        for request, done in waiting:
            if not rejection.first_request <= request <= rejection.last_request:
                kept.append((request, done))
            elif not done.done():
                done.set_exception(LocalProtocolError(rejection.reason))

    async def _next_batch(self) -> None:
        """Take the next batch, or wait until something arrives."""
        events = self._machine.get_events()
        if self._machine.wants_reading:
            self._adapter.give(m.Nudge())
        if events is not None:
            self._events = events
        else:
            self._arrived.clear()
            await self._arrived.wait()

    def _flush(self) -> None:
        self._flushing = False
        self._adapter.give(m.Nudge())


@asynccontextmanager
async def connect(spec: NodeSpec, seed: int = 0) -> AsyncIterator[SprinklerClient]:
    """Join the region of `spec` (role "client"): its neighbours reach it at its own address."""
    machine = Client(spec, Random(seed), keeps_events=True)  # noqa: S311 - spreads retries, no secret
    outputs = ApplicationOutputs()
    address = next((member.address for member in spec.members if member.name == spec.name), "")
    adapter = Adapter(machine, CODEC, address, outputs)
    client = SprinklerClient(machine, adapter)
    adapter.after_input = client.wake_waiting
    adapter.give(m.Started())
    try:
        await outputs.is_ready.wait()
        yield client
    finally:
        adapter.give(m.Finish())
        await adapter.close()
