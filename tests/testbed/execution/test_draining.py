"""When a run counts as drained."""

import asyncio
import json
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

from experiments.declared import Contract, default_declaration
from experiments.planned.draining import highest, lowest, reached
from testbed.execution.phases import drain
from testbed.processes import NodeProcess, Processes
from testbed.runner.barrier import Barriers
from testbed.runner.local_world import LocalWorld
from testbed.runner.run_context import Termination

ALL = Contract()
TOPICS = Contract(audience="topic", since="subscription")
PUBLISHED = highest([{0: 100}, {0: 120}, {1: 50}])


def drained(*clients: dict[int, int]) -> bool:
    return reached(PUBLISHED, clients, ALL)


def test_a_run_is_drained_when_each_client_has_each_stream_to_its_end():
    assert drained({0: 120, 1: 50}, {0: 121, 1: 50})  # unacknowledged in time
    assert not drained({0: 120, 1: 50}, {0: 119, 1: 50})
    assert not drained({0: 120})


def test_the_slowest_clients_report_suffices():
    for counts in (
        [{0: 120, 1: 50}, {0: 120, 1: 51}],
        [{0: 120, 1: 50}, {0: 119, 1: 50}],
        [{0: 120}, {1: 50}],
    ):
        assert reached(PUBLISHED, [lowest(counts, ALL)], ALL) == reached(PUBLISHED, counts, ALL)


class Draining:
    """A run whose drivers were told to stop: one driver and one client, reported by a launcher."""

    def __init__(self, drain_us: int) -> None:
        self.told: list[str] = []
        self.drained = False
        self.processes = Processes(on_exit=lambda _: None)
        self.drivers = [NodeProcess("r0/driver-0", "r0-driver-0", pid=1)]
        self.clients = [NodeProcess("r0/client-0", "r0-client-0", pid=2)]
        self.processes.history = self.drivers + self.clients
        self.processes.nodes = {node.name: node for node in self.processes.history}
        self._lines = asyncio.StreamReader()
        self.processes._launcher = SimpleNamespace(stdout=self._lines)
        self._reading = asyncio.create_task(self.processes._read())
        plan = SimpleNamespace(drain_us=drain_us, declared=default_declaration())
        record = SimpleNamespace(
            content=SimpleNamespace(plan=plan),
            phase=lambda _: None,
            notify=self.told.append,
            time=self._note,
        )
        barriers = Barriers(lambda _: None, alone=True)
        world: Any = LocalWorld(record, Termination(), barriers, None, AsyncExitStack())
        world._context = SimpleNamespace(
            processes=self.processes,
            having=lambda trait: self.drivers if trait == "publisher" else self.clients,
        )
        self.over = asyncio.create_task(drain(world))

    def _note(self, name: str) -> None:
        self.drained = name == "drained_ns"

    async def hear(self, name: str, *, silent: bool, **counts: dict[int, int]) -> None:
        """Process a node's progress report and all its effects."""
        message: dict[str, Any] = {"did": "progress", "name": name, "silent": silent}
        message |= {"published": {}, "delivered": {}} | counts
        self._lines.feed_data(json.dumps(message).encode() + b"\n")
        before = self.processes.nodes[name].progressed
        while self.processes.nodes[name].progressed == before:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)


def test_a_run_is_not_drained_before_the_last_acknowledgement():
    async def run() -> None:
        draining = Draining(drain_us=60_000_000)
        await draining.hear("r0/client-0", silent=True, delivered={0: 100})
        await draining.hear("r0/driver-0", silent=False, published={0: 100})
        assert not draining.over.done()
        await draining.hear("r0/driver-0", silent=True, published={0: 120})
        assert not draining.over.done()
        await draining.hear("r0/client-0", silent=True, delivered={0: 120})
        await draining.over
        assert draining.drained

    asyncio.run(run())


def test_a_driver_without_an_answer_is_awaited_only_as_planned():
    async def run() -> None:
        draining = Draining(drain_us=1)
        await draining.over
        assert (draining.drained, draining.told) == (False, ["drained"])

    asyncio.run(run())


def test_the_rule_considers_only_subscribed_streams():
    class Counted(dict):
        looks = 0

        def get(self, *key):
            type(self).looks += 1
            return super().get(*key)

        __getitem__ = get

    streams, clients = 10_000, 2_000
    published = Counted(dict.fromkeys(range(streams), 7))
    delivered = [Counted({4 * n % streams + place: 7 for place in range(4)}) for n in range(clients)]
    assert reached(published, delivered, TOPICS)
    assert set(lowest(delivered, TOPICS).values()) == {7}
    delivered[-1][0] = 6
    assert not reached(published, delivered, TOPICS)
    assert lowest(delivered, TOPICS)[0] == 6
    assert Counted.looks < 5 * 4 * clients
