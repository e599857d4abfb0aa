"""The prompt's side of its channel to the runner: one question, one answer."""

from collections.abc import Mapping
from typing import Any

from testbed.errors import TestbedError
from testbed.sandbox.channel import Channel

ANSWER_TIMEOUT_S = 60.0
"""A process that starts again may take forty seconds (`testbed.runner.starting`), on a busy machine."""


class RefusedError(TestbedError):
    """The runner does not do what was asked, and says why."""


class Runner:
    """Who carries out what is asked at the prompt."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._unanswered = 0  # questions that somebody stopped waiting for

    def opening(self) -> dict[str, Any]:
        """What the runner says first."""
        return self._receive()

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Ask, and wait for the answer. Raises RefusedError; TestbedError if the runner is gone."""
        self._channel.post({"do": do, **fields})
        self._unanswered += 1
        while self._unanswered > 1:
            self._receive()
            self._unanswered -= 1
        answer = self._receive()
        self._unanswered = 0
        if answer["did"] == "refused":
            raise RefusedError(answer["text"])
        return answer

    def fault(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Let a fault happen now."""
        return self.ask("fault", fault=dict(document))

    def _receive(self) -> dict[str, Any]:
        message = self._channel.receive(ANSWER_TIMEOUT_S)
        if message is None:
            raise TestbedError("the run has ended" if self._channel.ended else "the runner does not answer")
        return message
