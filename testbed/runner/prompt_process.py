"""The prompt's process, from the runner's side: a program with the user's terminal that sends requests.

It is a separate process, so that no command at the prompt can delay a fault, and has its own control channel.
Ctrl-C on the terminal reaches only the CLI outside, which forwards it; here it becomes a SIGINT to the
prompt. Before the prompt opens, the CLI is notified and must agree, so that the two do not write to the
terminal at the same time.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from testbed.execution.record import RunRecordWriter
from testbed.sandbox.channel import FD_VARIABLE, SandboxChannel

Message = dict[str, Any]

AGREE_TIMEOUT_S = 20.0
END_TIMEOUT_S = 3.0


class PromptProcess:
    """The program `command`, with this process's standard input and output."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: asyncio.subprocess.Process | None = None
        self._terminal_is_free = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether the prompt is open."""
        return self._process is not None and self._process.returncode is None

    def agree(self) -> None:
        """Allow the prompt to open, because the CLI has released the terminal."""
        self._terminal_is_free.set()

    def interrupt(self) -> None:
        """Interrupt the prompt after Ctrl-C."""
        if self._process is not None and self.is_open:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                self._process.send_signal(signal.SIGINT)

    async def talk(
        self, record: RunRecordWriter, opening: Message, answer: Callable[[Message], Awaitable[Message]]
    ) -> str | None:
        """Open the prompt, send `opening`, and answer requests until the user leaves; return the problem or
        None.
        """
        record.notify("prompt", open=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(AGREE_TIMEOUT_S):
                await self._terminal_is_free.wait()
        ours, theirs = SandboxChannel.pair()
        channel = SandboxChannel(ours)
        try:
            with theirs:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    env={**os.environ, FD_VARIABLE: str(theirs.fileno())},
                    pass_fds=(theirs.fileno(),),
                    stderr=asyncio.subprocess.STDOUT,
                )
            channel.post(opening)
            await _serve(channel, answer)
            code = await self._process.wait()
            return f"the prompt ended unexpectedly (exit code {code})" if code else None
        finally:
            channel.close()
            await self._end()
            record.notify("prompt", open=False)

    async def _end(self) -> None:
        process = self._process
        if process is None or not self.is_open:
            return
        process.terminate()
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _serve(channel: SandboxChannel, answer: Callable[[Message], Awaitable[Message]]) -> None:
    """Answer each request, in order, until the other end is closed."""
    loop = asyncio.get_running_loop()
    requests: asyncio.Queue[Message | None] = asyncio.Queue()

    def receive() -> None:
        message = channel.receive(0)
        if channel.ended:
            loop.remove_reader(channel.fileno())
            requests.put_nowait(None)
        elif message is not None:
            requests.put_nowait(message)

    loop.add_reader(channel.fileno(), receive)
    try:
        while (request := await requests.get()) is not None:
            channel.post(await answer(request))
    finally:
        loop.remove_reader(channel.fileno())
