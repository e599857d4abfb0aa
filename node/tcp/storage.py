"""A node's log over real files: a worker thread writes and syncs while the event loop continues.

Group commit: while the thread is busy, the machine's operations accumulate; the thread then takes all of them
and syncs once. The slower the disk, the larger the groups.

A full disk is retried: one line in the log, StorageFailed to the machine, and everything that is not durable
is tried again every `RETRY_S`; Synced and another line when there is room. After any other error the disk's
content is unknown (a failed fsync may leave pages that are clean and lost), so the node ends with that error.
When restarted it has the synced data, which is all that it ever acknowledged; its chain has continued without
it.
"""

import asyncio
import contextlib
import errno
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from node.core import machine as m
from node.core.errors import StorageError
from node.tcp.log_database import FULL, LogDatabase, Operation

RETRY_S = 1.0
GROUP_LIMIT = 1024  # operations in one round of the thread
CLOSE_LIMIT_S = 5.0  # to make pending operations durable at the end


class Storage:
    """The log of one node on the running event loop.

    give: takes the inputs for the machine. log: takes lines. broken: receives an error after which the node
    must end.
    """

    def __init__(
        self,
        database: LogDatabase,
        give: Callable[[m.Input], None],
        log: Callable[[m.Log], None],
        broken: Callable[[BaseException], None],
    ) -> None:
        self._database = database
        self._give = give
        self._log = log
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "storage")
        self._pending: deque[Operation] = deque()
        self._appended = 0  # durable Append effects
        self._busy: asyncio.Task[None] | None = None
        self._full = False
        self._ended = False

    def stored(self) -> Iterable[m.StoredSegment]:
        """Return the stored segments, for Started. See `LogDatabase.read`."""
        return self._database.read()

    def take(self, operation: Operation) -> None:
        """Execute an Append or a Rewrite, after those before it."""
        if self._ended:
            return
        self._pending.append(operation)
        if self._busy is None:
            self._busy = self._loop.create_task(self._work())
            self._busy.add_done_callback(self._worked)

    async def close(self) -> None:
        """Wait until pending operations are durable, up to a limit, and release everything."""
        with contextlib.suppress(TimeoutError):
            if self._busy is not None:
                await asyncio.wait_for(asyncio.shield(self._busy), CLOSE_LIMIT_S)
        self._ended = True
        if self._busy is not None:
            self._busy.cancel()
        await asyncio.to_thread(self._thread.shutdown)
        self._database.close()

    async def _work(self) -> None:
        try:
            while self._pending and not self._ended:
                await self._round()
        finally:
            self._busy = None

    def _worked(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._ended = True
            self._broken(error)

    async def _round(self) -> None:
        """Run one round of the thread and handle its result."""
        group = list(islice(self._pending, GROUP_LIMIT))
        try:
            await self._loop.run_in_executor(self._thread, self._database.perform, group)
        except (sqlite3.Error, OSError) as error:
            await self._failed(error)
            return
        if self._full:
            self._full = False
            self._log(m.Log("storage_recovered", {"file": str(self._database.path)}))
        for _ in group:
            self._pending.popleft()
        appended = sum(isinstance(each, m.Append) for each in group)
        if appended:
            self._appended += appended
            self._give(m.Synced(self._appended))

    async def _failed(self, error: sqlite3.Error | OSError) -> None:
        file, problem = str(self._database.path), str(error)
        if getattr(error, "sqlite_errorname", "") != FULL and getattr(error, "errno", None) != errno.ENOSPC:
            self._ended = True
            self._broken(StorageError(f"{file}: {problem}; what is synced is safe, the node ends"))
            return
        if not self._full:
            self._full = True
            fields: dict[str, Any] = {"file": file, "problem": problem, "retry_s": RETRY_S}
            self._log(m.Log("storage_full", fields, "error"))
            self._give(m.StorageFailed(problem))
        await asyncio.sleep(RETRY_S)
