"""The live state of a run, for any number of pages: each gets the whole state first, then changes.

Any thread may update it. A page that falls behind is disconnected; its browser reconnects and gets the whole
state.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from threading import Lock
from typing import Any

WAITING_MAX = 64

Json = dict[str, Any]
SERIES = ("throughput", "latency")
_END = ""


class LiveBoard:
    """The live state of one run. fixed: the constant part (title, charts, length)."""

    def __init__(self, fixed: Json) -> None:
        self._lock = Lock()
        self._fixed = fixed
        self._status: Json = {}
        self._lines: list[str] = []
        self._series: dict[str, dict[str, dict[float, list[float]]]] = {name: {} for name in SERIES}
        self._pages: list[tuple[asyncio.AbstractEventLoop, asyncio.Queue[str]]] = []
        self._ended = False

    def update(
        self,
        status: Json,
        *,
        throughput: dict[str, list[list[float]]] | None = None,
        latency: dict[str, list[list[float]]] | None = None,
        lines: list[str] | None = None,
    ) -> None:
        """Apply changes, and send them to all pages.

        Rows of a series begin with the start of their bin, in seconds since time 0, and replace that bin.
        """
        changed = {"throughput": throughput or {}, "latency": latency or {}}
        with self._lock:
            self._status |= status
            self._lines += lines or []
            for kind, series in changed.items():
                for name, rows in series.items():
                    self._series[kind].setdefault(name, {}).update({row[0]: row for row in rows})
            self._send({"status": status, "lines": lines or [], **changed})

    def whole(self) -> Json:
        """Return the whole state as plain JSON."""
        with self._lock:
            return self._whole()

    def end(self) -> None:
        """End all pages' streams."""
        with self._lock:
            self._ended = True
            for loop, queue in self._pages:
                loop.call_soon_threadsafe(_put, queue, _END)

    @property
    def pages(self) -> int:
        """The number of pages that follow the run."""
        return len(self._pages)

    async def follow(self) -> AsyncIterator[str]:
        """Yield one page's JSON texts: the whole state, then changes. Ends early if the page falls behind."""
        queue: asyncio.Queue[str] = asyncio.Queue(WAITING_MAX)
        page = (asyncio.get_running_loop(), queue)
        with self._lock:
            first = json.dumps({"whole": True, **self._whole()})
            if not self._ended:
                self._pages.append(page)
        try:
            yield first
            while not self._ended or not queue.empty():
                if queue.full():
                    return
                text = await queue.get()
                if text == _END:
                    return
                yield text
        finally:
            with self._lock:
                if page in self._pages:
                    self._pages.remove(page)

    def _whole(self) -> Json:
        series = {
            kind: {name: [bins[start] for start in sorted(bins)] for name, bins in found.items()}
            for kind, found in self._series.items()
        }
        return {**self._fixed, "status": self._status, "lines": self._lines, **series}

    def _send(self, content: Json) -> None:
        text = json.dumps(content)
        for loop, queue in self._pages:
            loop.call_soon_threadsafe(_put, queue, text)


def _put(queue: asyncio.Queue[str], text: str) -> None:
    if not queue.full():
        queue.put_nowait(text)
