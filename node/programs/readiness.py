"""Readiness of a program: by a port, its output, HTTP, a command, or a report of its client."""

import asyncio
import re
import subprocess
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence

from node.core.program import Readiness

AGAIN_S = 0.1
ATTEMPT_S = 2.0
HTTP_ERROR = 400
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


class NotReadyError(Exception):
    """A program was not ready in time; the message names the unmet condition."""


class ReadyWatch:
    """Waits for all conditions of a `Readiness`. It is notified of lines of output and of the client's
    report. setup: returns what a command's forked child does first.
    """

    def __init__(
        self,
        wanted: Readiness,
        address: str,
        env: Mapping[str, str],
        folder: str,
        setup: Callable[[Sequence[str]], Callable[[], None] | None],
    ) -> None:
        self._wanted, self._address, self._setup = wanted, address, setup
        self._env, self._folder = env, folder
        self._pattern = re.compile(wanted.line) if wanted.line else None
        self._line, self._reported = asyncio.Event(), asyncio.Event()
        self._waiting = ""

    def saw_line(self, text: str) -> None:
        """Handle a line of the program's output."""
        if self._pattern is not None and self._pattern.search(text):
            self._line.set()

    def was_told(self) -> None:
        """Handle the client's report that it is ready."""
        self._reported.set()

    async def wait(self) -> None:
        """Wait until ready. Raises NotReadyError at the timeout."""
        limit_s = self._wanted.within_us / 1e6
        try:
            async with asyncio.timeout(limit_s):
                for what, wait in self._steps():
                    self._waiting = what
                    await wait
        except TimeoutError:
            raise NotReadyError(f"not ready after {limit_s:g} s: {self._waiting}") from None

    def _steps(self) -> list[tuple[str, Awaitable[object]]]:
        wanted = self._wanted
        steps: list[tuple[str, Awaitable[object]]] = []
        if wanted.port:
            what = f"nothing listens at {self._address}:{wanted.port}"
            steps.append((what, _until(lambda: self._accepts(int(wanted.port)))))
        if self._pattern is not None:
            steps.append((f"no line of its output matches {wanted.line!r}", self._line.wait()))
        if wanted.http:
            steps.append(
                (
                    f"no answer from {wanted.http}",
                    _until(lambda: asyncio.wait_for(_answers(wanted.http), ATTEMPT_S)),
                )
            )
        if wanted.command:
            steps.append((f"{' '.join(wanted.command)} does not end with code 0", _until(self._succeeds)))
        if wanted.is_told:
            steps.append(("its client did not report it", self._reported.wait()))
        return steps

    async def _accepts(self, port: int) -> bool:
        async with asyncio.timeout(ATTEMPT_S):
            _, writer = await asyncio.open_connection(self._address, port)
        writer.close()
        return True

    async def _succeeds(self) -> bool:
        process = await asyncio.create_subprocess_exec(
            *self._wanted.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(self._env),
            cwd=self._folder,
            preexec_fn=self._setup(self._wanted.command),
        )
        try:
            return await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()


async def _until(attempt: Callable[[], Awaitable[bool]]) -> None:
    """Repeat an attempt until it succeeds: the caller limits the time."""
    while True:
        try:
            if await attempt():
                return
        except (OSError, TimeoutError, EOFError, subprocess.SubprocessError):
            pass  # not yet: the next attempt may succeed
        await asyncio.sleep(AGAIN_S)


async def _answers(address: str) -> bool:
    """Return whether an HTTP address answers with a status below 400."""
    parts = urllib.parse.urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        found = STATUS.match(await reader.readline())
        return found is not None and int(found[1]) < HTTP_ERROR
    finally:
        writer.close()
