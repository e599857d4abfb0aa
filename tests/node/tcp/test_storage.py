"""A node's log on a running event loop: syncs are grouped, order is kept, a full disk is waited for."""

import asyncio
import threading

import pytest

from node.core import machine as m
from node.core.errors import StorageError
from node.protocols.sprinkler.messages import CODEC, Token
from node.tcp import storage as module
from node.tcp.log_files import FileSystem, LogFiles
from node.tcp.storage import Storage
from tests.node.tcp.crashing_files import EIO, ENOSPC, FailingFiles


class Held(FileSystem):
    """A disk whose syncs wait until they are let go."""

    def __init__(self):
        self.free = threading.Event()
        self.syncs = 0

    def sync(self, descriptor):
        assert self.free.wait(30)
        super().sync(descriptor)
        self.syncs += 1


class Node:
    """The output of a storage, and waiting for it."""

    def __init__(self, folder, disk=None):
        self.given, self.lines, self.broken = [], [], []
        self.files = LogFiles(folder, CODEC, files=disk)
        self.storage = Storage(self.files, self.given.append, self.lines.append, self.broken.append)
        self.stored = [
            (segment.number, [message.configuration for message in segment.messages])
            for segment in self.storage.start()
        ]

    async def wait(self, condition):
        async with asyncio.timeout(30):
            while not condition():  # told by a thread, through the loop
                await asyncio.sleep(0)

    async def wait_synced(self, count):
        await self.wait(lambda: m.Synced(count) in self.given)


def append(number, segment=1):
    return m.Append(segment, (Token(number),))


def test_appends_during_a_sync_are_synced_together_by_the_next(tmp_path):
    async def use():
        disk = Held()
        node = Node(tmp_path / "log", disk)
        node.storage.take(append(0))
        await asyncio.sleep(0)  # the thread has it now, and waits
        for number in range(1, 500):
            node.storage.take(append(number))
        disk.free.set()
        await node.wait_synced(500)
        assert node.given == [m.Synced(1), m.Synced(500)]
        assert disk.syncs == 2
        await node.storage.close()
        after = Node(tmp_path / "log")
        assert after.stored == [(1, list(range(500)))]
        await after.storage.close()

    asyncio.run(use())


def test_nothing_counts_as_synced_before_the_disk_has_it(tmp_path):
    async def use():
        disk = Held()
        node = Node(tmp_path / "log", disk)
        node.storage.take(append(0))
        for _ in range(100):
            await asyncio.sleep(0)
        assert node.given == []
        disk.free.set()
        await node.wait_synced(1)
        await node.storage.close()

    asyncio.run(use())


def test_a_full_disk_is_reported_once_waited_for_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", 0.001)

    async def use():
        disk = FailingFiles()
        node = Node(tmp_path / "log", disk)
        node.storage.take(append(0))
        await node.wait_synced(1)
        disk.error = ENOSPC
        node.storage.take(append(1))
        node.storage.take(append(2, segment=2))
        await node.wait(lambda: len(node.given) == 2)
        rounds = node.files.syncs
        for _ in range(200):
            await asyncio.sleep(0.0001)
        assert node.given == [m.Synced(1), m.StorageFailed("No space left on device")]
        assert [(line.event, line.level) for line in node.lines] == [("storage_full", "error")]
        assert node.files.syncs == rounds
        disk.error = None
        await node.wait_synced(3)
        assert [line.event for line in node.lines] == ["storage_full", "storage_recovered"]
        await node.storage.close()
        assert Node(tmp_path / "log").stored == [(1, [0, 1]), (2, [2])]

    asyncio.run(use())


@pytest.mark.parametrize("at_sync", [False, True])
def test_a_broken_disk_ends_the_node_and_nothing_more_is_acknowledged(tmp_path, at_sync):
    async def use():
        disk = FailingFiles(at_sync=at_sync)
        node = Node(tmp_path / "log", disk)
        node.storage.take(append(0))
        await node.wait_synced(1)
        disk.error = EIO
        node.storage.take(append(1))
        await node.wait(lambda: node.broken)
        disk.error = None
        node.storage.take(append(2))
        await node.storage.close()
        assert [type(error) for error in node.broken] == [StorageError]
        assert "Input/output error" in str(node.broken[0])
        assert node.given == [m.Synced(1)]
        (stored,) = Node(tmp_path / "log").stored
        assert stored[1][0] == 0
        assert 2 not in stored[1]

    asyncio.run(use())


def test_operations_accepted_before_the_end_are_on_disk(tmp_path):
    async def use():
        node = Node(tmp_path / "log")
        for number in range(50):
            node.storage.take(append(number, segment=1 + number // 20))
        node.storage.take(m.Rewrite((1, 2), (Token(7),)))
        await node.storage.close()
        assert Node(tmp_path / "log").stored == [(1, [7]), (3, list(range(40, 50)))]

    asyncio.run(use())
