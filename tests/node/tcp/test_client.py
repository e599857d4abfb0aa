"""The client interface for applications over real sockets: publications and events in order."""

import asyncio
import socket
from dataclasses import replace
from random import Random

from node.core import machine as m
from node.core.errors import LocalProtocolError
from node.protocols.sprinkler.messages import CODEC, EventKind, Predicate
from node.protocols.sprinkler.proxy import Proxy
from node.protocols.sprinkler.region.client import KEPT_BATCHES
from node.tcp.adapter import Adapter, ApplicationOutputs
from node.tcp.client import connect
from tests.node.tcp.launched import loopback_specs


async def with_proxy(tmp_path, use):
    """Run one proxy in this process; `use` gets the specification of its client."""
    quick = {"restore_wait_us": 1}
    specs = loopback_specs(tmp_path, regions=1, clients=2, parameters=quick)
    proxy = Adapter(Proxy(specs[0], Random(1)), CODEC, "127.0.0.1", ApplicationOutputs())
    proxy.give(m.Started())
    try:
        await asyncio.wait_for(use(replace(specs[0], name="r0/client-0", role="client"), proxy), 60)
    finally:
        proxy.give(m.Finish())
        await proxy.close()


def test_published_events_arrive_in_order(tmp_path):
    events = [f"event {number}".encode() for number in range(500)]

    async def use(spec, proxy):
        async with connect(spec) as client:
            await asyncio.gather(*(client.publish(event) for event in events))
            got = [await client.get_event() for _ in events]
            await client.publish(b"first")
            await client.publish(b"second")
            assert [(await client.get_event()).data for _ in range(2)] == [b"first", b"second"]
            assert [event.data for event in got] == events
            assert [event.seq for event in got] == list(range(1, 501))
            assert {(event.kind, event.stream, event.range) for event in got} == {(EventKind.DATA, 0, 1)}

    asyncio.run(with_proxy(tmp_path, use))


def test_events_collect_others_and_one_that_would_undo_that_is_refused(tmp_path):
    async def use(spec, proxy):
        async with connect(spec) as client:
            await client.publish(b"key 1 old", Predicate.SAME_KEY, 5)
            undoing = client.publish(b"key 1 odd", Predicate.SAME_KEY, 7)
            fine = client.publish(b"key 1 new", Predicate.SAME_KEY, 5)
            answers = await asyncio.gather(undoing, fine, return_exceptions=True)
            assert isinstance(answers[0], LocalProtocolError)
            assert "5" in str(answers[0])
            assert answers[1] is None
        async with connect(replace(spec, name="r0/client-1")) as late:
            got = [await late.get_event() for _ in range(2)]
            assert [(event.kind, event.seq, event.data) for event in got] == [
                (EventKind.TOMBSTONE, 1, b""),
                (EventKind.GC, 2, b"key 1 new"),
            ]

    asyncio.run(with_proxy(tmp_path, use))


def test_an_application_that_reads_nothing_gets_a_bounded_number_of_events(tmp_path):
    async def use(spec, proxy):
        async with connect(replace(spec, name="r0/client-1")) as lazy, connect(spec) as busy:
            size, count = 60_000, 4 * KEPT_BATCHES
            for number in range(count):
                await busy.publish(number.to_bytes(4, "big") + bytes(size))
                assert (await busy.get_event()).seq == number + 1
            assert lazy._machine.progress().delivered[0] < count
            got = [await lazy.get_event() for _ in range(count)]
            assert [int.from_bytes(event.data[:4], "big") for event in got] == list(range(count))

    asyncio.run(with_proxy(tmp_path, use))


def test_both_ends_send_small_messages_without_delay(tmp_path):
    """Check it, because Nagle's algorithm would delay an advertisement behind unacknowledged events."""

    async def use(spec, proxy):
        async with connect(spec) as client:
            for adapter in (client._adapter, proxy):
                (connection,) = adapter._connections.values()
                raw = connection._transport.get_extra_info("socket")
                assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    asyncio.run(with_proxy(tmp_path, use))
