"""Everything that stands while a run is on: what the phases hand to each other.

With it stands whether the run is to end before its time, and why; the first reason counts.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from experiments.plan import Plan
from testbed.captures import Captures
from testbed.links.emulator import LinkEmulator
from testbed.network import Network
from testbed.processes import NodeProcess, Processes
from testbed.runner.meeting import Meeting
from testbed.runner.phases import Outcome
from testbed.runner.record import RunRecord
from testbed.share import Share


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


@dataclass(frozen=True, slots=True)
class Stage:
    """What of the plan is carried out here, and what was built from it. `specs` are the launcher's, by
    process name.
    """

    plan: Plan
    share: Share
    meeting: Meeting
    record: RunRecord
    ending: Ending
    network: Network
    emulator: LinkEmulator
    captures: Captures
    processes: Processes
    specs: dict[str, dict[str, Any]]

    def having(self, trait: str) -> list[NodeProcess]:
        """The node processes with a trait that are running."""
        names = [process.name for process in self.plan.having(trait)]
        started = [self.processes.nodes[name] for name in names if name in self.processes.nodes]
        return [node for node in started if node.running]

    def note_processes(self) -> None:
        """Put what is known of the node processes into the record."""
        self.record.content["processes"] = [
            {"name": node.name, "host": node.host, "pid": node.pid, "exit": node.exit}
            for node in self.processes.history
        ]
