"""Injection of faults on request, in addition to those of the experiment's file if they are enabled.

Both form one schedule (`testbed.faults.interactive`). Each change is applied once, at its time.
The plan in run.json always has all faults so far, so that even a run that dies at the prompt can be analysed.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from experiments.model import Experiment
from experiments.planned.change_text import differing_text
from experiments.planned.changes import LinkChange, LinkState, ProcessAction
from testbed.errors import TestbedError
from testbed.faults.application import AppliedChange, Change, apply_concurrently
from testbed.faults.interactive import InteractiveSchedule
from testbed.links.emulator import Applied
from testbed.runner.run_context import RunContext
from testbed.steady_clock import steady_clock
from topologies.model import Topology

Message = dict[str, Any]


class FaultInjector:
    """All faults of an interactive run, and how many of their changes have been applied."""

    def __init__(
        self, context: RunContext, zero_ns: int, apply: Callable[[Change], Awaitable[Applied]]
    ) -> None:
        content = context.record.content
        self._context = context
        self._zero_ns = zero_ns
        self._clock_ns = steady_clock()
        self._apply = apply
        self._known = InteractiveSchedule(
            Experiment.model_validate(content.experiment),
            Topology.model_validate(content.topology),
            content.plan.links,
        )
        self.happened: list[AppliedChange] = []
        """The changes applied at their scheduled times, without those applied at once on request."""
        self._done: list[Change] = []  # the first of all changes; later faults cannot alter them
        self._more = asyncio.Event()
        self.noted = asyncio.Event()
        """Set when there are changes to save; the code that saves clears it."""
        self._one_at_a_time = asyncio.Lock()

    @property
    def names(self) -> list[str]:
        """The names of all faults so far."""
        return [fault.name for fault in self._known.experiment.faults]

    @property
    def in_the_file(self) -> list[dict[str, Any]]:
        """All faults so far, in the form of an experiment's file."""
        found: list[dict[str, Any]] = self._known.experiment.to_json().get("faults", [])
        return found

    async def execute(self) -> None:
        """Apply each change at its time, until cancelled."""
        while True:
            async with self._one_at_a_time:
                await self._catch_up(self._now_us())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._wait_s()):
                    await self._more.wait()
            self._more.clear()

    async def ask(self, given: Mapping[str, Any]) -> list[AppliedChange]:
        """Inject a fault now; return its applied changes. Raises TestbedError if none was applied."""
        async with self._one_at_a_time:
            latest_us = max((change.at_us for change in self._done), default=-1)
            at_us = max(self._now_us(), latest_us + 1)
            await self._catch_up(at_us - 1)
            before, known = len(self._done), self._known
            self._known = known.with_fault(given, at_us)
            found = await self._do_due(at_us)
            if found and all(each.applied_ns is None for each in found):
                self._known, self._done = known, self._done[:before]
                raise TestbedError(str(found[0].error))
            self.note()
            for applied in found:
                self._context.record.change(applied)
            self._more.set()
            return found

    def note(self) -> None:
        """Record the faults so far in the plan of run.json, as if the run ended now."""
        duration_us = self._now_us() + 1
        self._context.record.note(
            plan=self._known.plan(self._context.plan, duration_us),
            experiment=self._known.until(duration_us).to_json(),
        )
        self.noted.set()

    def now(self) -> Message:
        """Return all deviations from the configuration: {"links": {link: text}, "stopped": [process]}."""
        links: dict[tuple[str, str], LinkChange] = {}
        stopped: dict[str, bool] = {}
        for change in self._done:
            if isinstance(change, LinkChange):
                links[change.place, change.direction] = change
            elif not change.action.is_of_environment:
                stopped[change.process] = change.action is ProcessAction.STOP
        configured = {link.name: link for link in self._context.plan.links}
        found = {}
        for (name, direction), change in links.items():
            parameters = getattr(configured[change.link], direction)
            if change.state is not LinkState.UP or change.parameters != parameters:
                text = differing_text(change.parameters, parameters)
                found[f"{name} {direction}"] = text if change.state is LinkState.UP else str(change.state)
        return {"links": found, "stopped": [name for name, is_so in stopped.items() if is_so]}

    def _now_us(self) -> int:
        return max(0, (self._clock_ns() - self._zero_ns) // 1000)

    def _pending(self) -> Sequence[Change]:
        return self._known.changes[len(self._done) :]

    def _wait_s(self) -> float | None:
        pending = self._pending()
        return max(0, pending[0].at_us - self._now_us()) / 1e6 if pending else None

    async def _catch_up(self, until_us: int) -> None:
        for applied in await self._do_due(until_us):
            self.note()
            self._context.record.change(applied)
            self.happened.append(applied)

    async def _do_due(self, until_us: int) -> list[AppliedChange]:
        found = []
        while (pending := self._pending()) and (at_us := pending[0].at_us) <= until_us:
            together = [
                (index, change)
                for index, change in enumerate(pending, len(self._done))
                if change.at_us == at_us
            ]
            self._done += [change for _, change in together]
            found += await apply_concurrently(together, self._zero_ns + at_us * 1000, self._apply)
        return found
