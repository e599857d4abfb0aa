"""A node's log on disk: syncs are grouped, a full disk is retried, a crash leaves a valid prefix."""

import asyncio
import shutil
import sqlite3
import threading
import zlib
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node.core import machine as m
from node.core.errors import StorageError
from node.protocols.sprinkler.messages import CODEC, Token
from node.tcp import log_database
from node.tcp import storage as module
from node.tcp.log_database import FILE, SETUP, LogDatabase
from node.tcp.storage import Storage

ROW_HEAD_BYTES = 16  # at least: number, types and sizes of a row's columns, the segment and the CRC


class Disk(LogDatabase):
    """A log whose writes block until they are released, or fail while an error is set."""

    def __init__(self, folder):
        super().__init__(folder, CODEC)
        self.free, self.error, self.writes = threading.Event(), "", 0
        self.free.set()

    def perform(self, operations):
        assert self.free.wait(30)
        self.writes += 1
        if self.error:
            failure = sqlite3.OperationalError(self.error)
            failure.sqlite_errorname = self.error
            raise failure
        super().perform(operations)


class Node:
    """A node that records the output of its storage, and waits for it."""

    def __init__(self, disk):
        self.given, self.lines, self.broken = [], [], []
        self.storage = Storage(disk, self.given.append, self.lines.append, self.broken.append)

    async def wait(self, condition):
        async with asyncio.timeout(30):
            while not condition():  # told by a thread, through the loop
                await asyncio.sleep(0)

    async def wait_synced(self, count):
        await self.wait(lambda: m.Synced(count) in self.given)


def append(*numbers, segment=1):
    return m.Append(segment, tuple(Token(number) for number in numbers))


def stored(folder):
    return [message.configuration for segment in segments(folder) for message in segment.messages]


def segments(folder):
    database = LogDatabase(folder, CODEC)
    try:
        return list(database.read())
    finally:
        database.close()


def test_appends_during_a_sync_are_synced_together_by_the_next(tmp_path):
    async def use():
        disk = Disk(tmp_path)
        node = Node(disk)
        disk.free.clear()
        node.storage.take(append(0))
        for number in range(1, 500):
            await asyncio.sleep(0)  # the thread has the first one, and waits
            node.storage.take(append(number))
        assert node.given == []
        disk.free.set()
        await node.wait_synced(500)
        assert node.given == [m.Synced(1), m.Synced(500)]
        await node.storage.close()

    asyncio.run(use())
    assert stored(tmp_path) == list(range(500))


def test_a_full_disk_is_reported_once_waited_for_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", 0.001)

    async def use():
        disk = Disk(tmp_path)
        node = Node(disk)
        node.storage.take(append(0))
        await node.wait_synced(1)
        disk.error = "SQLITE_FULL"
        node.storage.take(append(1))
        node.storage.take(append(2))
        await node.wait(lambda: disk.writes > 5)
        assert node.given == [m.Synced(1), m.StorageFailed("SQLITE_FULL")]
        assert [(line.event, line.level) for line in node.lines] == [("storage_full", "error")]
        disk.error = ""
        await node.wait_synced(3)
        assert [line.event for line in node.lines] == ["storage_full", "storage_recovered"]
        await node.storage.close()

    asyncio.run(use())
    assert stored(tmp_path) == [0, 1, 2]


def test_a_broken_disk_ends_the_node_and_nothing_more_is_acknowledged(tmp_path):
    async def use():
        disk = Disk(tmp_path)
        node = Node(disk)
        node.storage.take(append(0))
        await node.wait_synced(1)
        disk.error = "SQLITE_IOERR_FSYNC"
        node.storage.take(append(1))
        await node.wait(lambda: node.broken)
        disk.error = ""
        node.storage.take(append(2))
        await node.storage.close()
        assert "SQLITE_IOERR_FSYNC" in str(node.broken[0])
        assert [type(error) for error in node.broken] == [StorageError]
        assert node.given == [m.Synced(1)]

    asyncio.run(use())
    assert stored(tmp_path) == [0]


def test_operations_accepted_before_the_end_are_on_disk(tmp_path):
    async def use():
        node = Node(Disk(tmp_path / "log"))
        for number in range(50):
            node.storage.take(append(number, segment=1 + number // 10))
        node.storage.take(m.Rewrite((2, 3), (Token(7), Token(8))))
        node.storage.take(m.Rewrite((1,), ()))
        node.storage.take(append(50, segment=5))
        await node.storage.close()

    asyncio.run(use())
    assert stored(tmp_path / "log") == [7, 8, *range(30, 51)]


def test_a_crash_leaves_all_that_was_written_and_a_torn_write_leaves_a_prefix(tmp_path):
    database = LogDatabase(tmp_path / "log", CODEC)
    for number in range(0, 40, 2):
        database.perform([append(number, number + 1)])
    shutil.copytree(tmp_path / "log", tmp_path / "crashed")
    database.close()
    assert stored(tmp_path / "crashed") == list(range(40))
    shutil.copytree(tmp_path / "log", tmp_path / "torn")
    database = LogDatabase(tmp_path / "torn", CODEC)
    database.perform([append(number) for number in range(40, 60)])
    shutil.copytree(tmp_path / "torn", tmp_path / "whole")
    database.close()
    wal = (tmp_path / "whole" / f"{FILE}-wal").read_bytes()
    for size in range(0, len(wal), 97):
        folder = shutil.copytree(tmp_path / "whole", tmp_path / str(size))
        (folder / f"{FILE}-wal").write_bytes(wal[:size])
        assert stored(folder) == list(range(40)), "a group is durable as a whole"
    assert stored(tmp_path / "whole") == list(range(60))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_log_is_an_error_with_the_remedy_and_never_served(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("log")
    database = LogDatabase(folder, CODEC)
    database.perform(
        [append(*range(number, number + 10), segment=1 + number // 100) for number in range(0, 1000, 10)]
    )
    database.close()
    before, content = segments(folder), (folder / FILE).read_bytes()
    at = data.draw(st.integers(0, 8 * len(content) - 1))
    assert_refused_or_equal(folder, with_flipped_bit(content, at), before)


@pytest.mark.slow
def test_damage_to_any_bit_of_a_row_or_to_the_schema_is_an_error(tmp_path):
    database = LogDatabase(tmp_path, CODEC)
    database.perform([append(1, segment=1), append(7, segment=2), append(8, segment=3)])
    database.close()
    before, content = segments(tmp_path), (tmp_path / FILE).read_bytes()
    with closing(sqlite3.connect(tmp_path / FILE)) as raw:
        [(frames,)] = raw.execute("SELECT frames FROM log WHERE segment = 2")
    at = content.index(frames)
    schema = content.index(b"CREATE TABLE")
    for bit in (8 * schema + 7, *range(8 * (at - ROW_HEAD_BYTES), 8 * (at + len(frames)))):
        assert_refused_or_equal(tmp_path, with_flipped_bit(content, bit), before)


def with_flipped_bit(content, at):
    damaged = bytearray(content)
    damaged[at // 8] ^= 1 << at % 8
    return damaged


def assert_refused_or_equal(folder, content, before):
    """Check that a log with this content is refused, or read as before if only free space was hit."""
    (folder / FILE).write_bytes(content)
    try:
        assert segments(folder) == before
    except StorageError as error:
        assert str(folder) in str(error)  # noqa: PT017 - either is right
        assert "Restore the file from a copy" in str(error)  # noqa: PT017


def test_a_log_that_never_had_room_is_empty_and_takes_data_once_it_has(tmp_path, monkeypatch):
    database = LogDatabase(tmp_path, CODEC)
    with monkeypatch.context() as full:
        full.setattr(log_database, "SETUP", ("PRAGMA max_page_count=1", *SETUP))
        with pytest.raises(sqlite3.OperationalError, match="full"):
            database.perform([append(1)])
        assert stored(tmp_path) == []
    database.perform([append(1)])
    database.close()
    assert stored(tmp_path) == [1]


def test_a_row_that_is_no_message_is_an_error_and_two_processes_cannot_have_the_same_log(tmp_path):
    database = LogDatabase(tmp_path, CODEC)
    database.perform([append(1)])
    with pytest.raises(StorageError, match="another process"):
        stored(tmp_path)
    database.close()
    frames = b"\0\0\0\4\1\xfa\0\0"
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as raw:
        row = zlib.crc32(frames, 1), frames
        raw.execute("INSERT INTO log (segment, crc, frames) VALUES (1, ?, ?)", row)
    with pytest.raises(StorageError, match="row 2"):
        stored(tmp_path)
