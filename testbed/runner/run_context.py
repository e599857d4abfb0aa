"""The context of a running run, which its phases share.

It includes whether the run has to end early, and why; the first reason counts.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from experiments.planned.plan import Plan
from experiments.records.observations import ProcessRecord
from experiments.records.run_record import Outcome
from testbed.assignment import Assignment
from testbed.capturing.captures import TcpdumpCaptures
from testbed.errors import TestbedError
from testbed.execution.contacts import Contacts
from testbed.execution.record import RunRecordWriter
from testbed.faults.application import Numbered
from testbed.faults.clocks import Clocks
from testbed.links.emulator import LinkEmulator
from testbed.network.network import Network
from testbed.network.routing.daemons import RoutingDaemons
from testbed.processes import NodeProcess, Processes
from testbed.runner.barrier import Barriers
from testbed.runner.disks.own_disks import OwnDisks
from testbed.runner.disks.slow_disks import SlowDisks
from testbed.runner.processor_use import used_s
from testbed.runner.throttles import Throttles
from testbed.traffic import TrafficGenerators


class EndedEarlyError(TestbedError):
    """The run has to end before there is a network."""


class Termination:
    """A request to end the run early: by the user, for lack of disk space, or after a failure."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self.outcome = Outcome.COMPLETED
        self.reason = ""
        self.listen: Callable[[], None] = lambda: None
        """Receives pending requests while the network is built, which blocks the event loop."""

    def check(self) -> None:
        """Raise EndedEarlyError if the run has to end now."""
        self.listen()
        if self.requested:
            raise EndedEarlyError(self.reason)

    @property
    def requested(self) -> bool:
        """Whether the run has to end now."""
        return self._requested.is_set()

    @property
    def crashed(self) -> bool:
        """Whether the testbed broke, so that parts of it no longer answer."""
        return self.outcome is Outcome.CRASHED

    def interrupt(self, reason: str) -> None:
        """End the run in order."""
        self._request(Outcome.INTERRUPTED, reason)

    def crash(self, reason: str) -> None:
        """End the run because the testbed broke; captures are kept."""
        self._request(Outcome.CRASHED, reason)

    async def or_done(self, work: Coroutine[Any, Any, None]) -> bool:
        """Await `work`, but abandon it once the run has to end; return whether it was done. Raises its
        errors.
        """
        doing = asyncio.ensure_future(work)
        requested = asyncio.ensure_future(self._requested.wait())
        try:
            await asyncio.wait((doing, requested), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                return False
            doing.result()
            return True
        finally:
            for task in (doing, requested):
                task.cancel()
            await asyncio.gather(doing, requested, return_exceptions=True)

    def _request(self, outcome: Outcome, reason: str) -> None:
        if not self.requested:
            self.outcome, self.reason = outcome, reason
            self._requested.set()


@dataclass(frozen=True, slots=True)
class RunContext:
    """The part of the plan that this machine executes, and what was built from it.

    `specs` are the launcher's, by process name; `contacts` are of the whole plan; `changes` are those made
    here, with their indexes in the whole plan.
    """

    plan: Plan
    assignment: Assignment
    barriers: Barriers
    record: RunRecordWriter
    termination: Termination
    network: Network
    emulator: LinkEmulator
    captures: TcpdumpCaptures
    processes: Processes
    specs: dict[str, dict[str, Any]]
    contacts: Contacts
    changes: tuple[Numbered, ...]
    traffic: TrafficGenerators
    routing: RoutingDaemons
    disks: OwnDisks
    slow_disks: SlowDisks
    clocks: Clocks
    throttles: Throttles

    def having(self, trait: str) -> list[NodeProcess]:
        """Return the running node processes whose role has a trait."""
        names = [process.name for process in self.plan.having(trait)]
        started = [self.processes.nodes[name] for name in names if name in self.processes.nodes]
        return [node for node in started if node.running]

    def note_processes(self) -> None:
        """Record the state of all node processes."""
        self.record.note(
            processes=tuple(
                ProcessRecord(node.name, node.host, node.pid, node.exit, processor_s=node.processor_s)
                for node in self.processes.history
            )
        )

    def measure_processors(self, *, at_zero: bool = False) -> None:
        """Measure the processor time of the node processes: called at time 0 and at the end."""
        running = {node.pid: node for node in self.processes.history if node.pid is not None and node.running}
        for pid, seconds in used_s(running).items():
            node = running[pid]
            if at_zero:
                node.used_before_s = seconds
            else:
                node.processor_s = round(seconds - node.used_before_s, 3)
