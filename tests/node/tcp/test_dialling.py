"""Dialling in the worst case: a connection that opens just as its timeout expires."""

import asyncio
from contextlib import suppress

import uvloop

from node.core import machine as m
from node.protocols.sprinkler.messages import CODEC
from node.tcp.adapter import Adapter, ApplicationOutputs

LIMIT_S = 30
MINUTE_US = 60_000_000
ADDRESS = "127.0.0.1"


class TooLate:
    """An event loop on which the dial timeout expires before the success is reported."""

    def __init__(self, loop):
        self._loop = loop

    def __getattr__(self, name):
        return getattr(self._loop, name)

    async def create_connection(self, factory, *target, **options):
        connection = factory()
        dialling = self._loop.create_task(
            self._loop.create_connection(lambda: connection, *target, **options)
        )
        while not connection.number:
            await asyncio.sleep(0)
        dialling.cancel()
        with suppress(asyncio.CancelledError):
            await dialling
        raise TimeoutError


class Dialler:
    """A machine that records its inputs and returns scripted effects."""

    frame_limit_bytes = 1000

    def __init__(self):
        self.told, self.asked = [], []

    def handle(self, given, now_us):
        self.told.append(given)
        asked, self.asked = self.asked, []
        return asked


async def dial_too_late():
    """Dial with a late connection; return the machine's inputs. The machine closes the connection as
    silent.
    """
    server = await asyncio.start_server(lambda reader, writer: None, ADDRESS, 0)
    port = server.sockets[0].getsockname()[1]
    machine = Dialler()
    adapter = Adapter(machine, CODEC, ADDRESS, ApplicationOutputs())
    adapter._loop = TooLate(adapter._loop)
    machine.asked = [m.Connect("peer", ADDRESS, port, MINUTE_US)]
    adapter.start()
    async with asyncio.timeout(LIMIT_S):
        while len(machine.told) < 3:
            await asyncio.sleep(0)
    machine.asked = [m.Close(1, abort=True)]
    adapter.give(m.Nudge())
    await adapter.close()
    server.close()
    return machine.told


def test_a_connection_that_opens_too_late_is_reported_as_closed():
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        started, connected, gone, *_ = runner.run(dial_too_late())
    assert started == m.Started()
    assert connected == m.Connected(1, "peer")
    assert gone == m.Disconnected(1, "TimeoutError")
