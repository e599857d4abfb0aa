"""How many events a second reach each client, by stream, for whoever watches a run at the prompt."""

import asyncio
import time

from experiments.parameters import Trait
from testbed.runner.stage import Stage

PERIOD_S = 1.0  # nodes report four times as often


class Rates:
    """`by_client` is {client: {stream: events a second}}, on average over the last period."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.by_client: dict[str, dict[str, int]] = {}

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        before, before_s = self._delivered(), time.monotonic()
        while True:
            await asyncio.sleep(PERIOD_S)
            after, after_s = self._delivered(), time.monotonic()
            self.by_client = {
                name: {
                    stream: round(max(0, seq - before.get(name, {}).get(stream, 0)) / (after_s - before_s))
                    for stream, seq in streams.items()
                }
                for name, streams in after.items()
            }
            before, before_s = after, after_s

    def _delivered(self) -> dict[str, dict[str, int]]:
        return {
            client.name: {str(stream): seq for stream, seq in client.delivered.items()}
            for client in self._stage.having(Trait.SUBSCRIBER)
        }
