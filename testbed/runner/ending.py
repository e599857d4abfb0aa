"""Whether a run is to end before its time, and why. The first reason counts."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from testbed.runner.phases import Outcome


class Ending:
    """Asked for by the user, by a disk that is nearly full, or by a part of the testbed that died."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self.outcome = Outcome.COMPLETED
        self.reason = ""

    @property
    def asked(self) -> bool:
        """Whether the run is to end now."""
        return self._asked.is_set()

    @property
    def crashed(self) -> bool:
        """Whether the testbed broke, so that parts of it no longer answer."""
        return self.outcome is Outcome.CRASHED

    def interrupt(self, reason: str) -> None:
        """End tidily."""
        self._ask(Outcome.INTERRUPTED, reason)

    def crash(self, reason: str) -> None:
        """End because the testbed broke; captures are kept."""
        self._ask(Outcome.CRASHED, reason)

    async def or_done(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do `work`, but give it up once the run is to end; whether it was done. Raises what it does."""
        doing = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait((doing, asked), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                return False
            doing.result()
            return True
        finally:
            for task in (doing, asked):
                task.cancel()
            await asyncio.gather(doing, asked, return_exceptions=True)

    def _ask(self, outcome: Outcome, reason: str) -> None:
        if not self.asked:
            self.outcome, self.reason = outcome, reason
            self._asked.set()
