"""Coordination of the machines of a run, which reports its progress as one run.

Machines wait for each other at barriers (`testbed.runner.barrier`). The coordinator releases a barrier when
all remaining machines have arrived, and the drain's barrier when every client on every machine also has all
its events. It no longer waits for a lost machine; a machine that fails ends the run for all. Faults and the
end of the run follow each machine's own clock and need no connection.
"""

import queue
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.declared import Contract
from experiments.files.sanitize import sanitize
from experiments.planned.draining import highest, reached
from experiments.records.run_record import Outcome, RunPhase
from testbed.machines.supervisor_client import Events, SupervisorClient
from testbed.runner.barrier import Barrier
from testbed.runner.run_control import Follow

LEAD_NS = 1_000_000_000
"""From the release of the first barrier to time 0; longer than the delay of a message to any machine."""
QUESTIONS_MIN = 5
"""Clock readings of each machine that are required before its time 0 is set."""
QUESTION_PERIOD_S = 1.0
QUICK_QUESTION_PERIOD_S = 0.1
LOOK_S = 0.25

_PHASES = list(RunPhase)


@dataclass(frozen=True, slots=True)
class _Counts:
    """The progress of a machine: last sequence numbers by stream, of its publishers and of each client."""

    published: Mapping[int, int]
    delivered: Sequence[Mapping[int, int]]


@dataclass(slots=True)
class Coordinator:
    """The coordinator of one run.

    peers: the supervisors, by machine. clients: their number by machine. duration_us: the plan's.
    """

    peers: Mapping[str, SupervisorClient]
    events: Events
    follow: Follow
    clients: Mapping[str, int]
    duration_us: int
    contract: Contract
    ended: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    """Machines that no longer take part: unreachable ones, and those whose supervisor has ended."""
    unreachable: set[str] = field(default_factory=set)
    """Lost machines to which there is no connection."""
    failed: dict[str, Any] = field(default_factory=dict)
    """The first failure that leaves the run without results."""
    problems: list[str] = field(default_factory=list)
    zeros: dict[str, int] = field(default_factory=dict)
    """Time 0 by each machine's clock."""
    _arrived: dict[str, set[str]] = field(default_factory=lambda: {barrier: set() for barrier in Barrier})
    _phases: dict[str, RunPhase] = field(default_factory=dict)
    _phase: RunPhase = RunPhase.PLANNED
    _rates: dict[str, tuple[int, int]] = field(default_factory=dict)
    _counts: dict[str, _Counts] = field(default_factory=dict)
    _zero_ns: int = 0
    _requested_s: float = 0.0
    _released: set[str] = field(default_factory=set)
    _stopped: bool = False

    def lead(self) -> None:
        """Coordinate until every machine has ended or is lost."""
        while not self._over:
            self._request_times()
            try:
                name, message = self.events.get(timeout=LOOK_S)
            except queue.Empty:
                name, message = "", {}
                self.follow({})
            if name in self.peers and name not in self.lost:
                self._handle_or_lose(name, message)
            elif message.get("do") == "stop":  # the user
                self._stop("stopped by the user before its time")
            self._release_barriers()

    # --- Messages of machines

    def _handle_or_lose(self, name: str, message: dict[str, Any]) -> None:
        """Handle a machine's message, which is validated and sanitized; a malformed one loses the machine."""
        try:
            self._handle(name, _printable(message))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            why = f"its supervisor sent an invalid message: {type(error).__name__}: {error}"
            self._handle(name, _printable({"did": "gone", "why": why}))

    def _handle(self, name: str, message: dict[str, Any]) -> None:
        match message.get("did"):
            case "waits":
                self._arrived[message["at"]].add(name)
            case "phase":
                self._phases[name] = RunPhase(message["phase"])
            case "progress":
                self._rates[name] = _count(message["events_per_s"]), _count(message["delivered"])
                self._report_progress()
            case "counts":
                self._counts[name] = _Counts(
                    highest([message["published"]]), [highest([client]) for client in message["delivered"]]
                )
            case "problem":
                self._problem(name, message["text"])
            case "change":
                self.follow({**message, "requested_ns": self._ours_ns(name, message["requested_ns"])})
            case "failed":
                failed = {"kind": message["kind"], "text": f"{name}: {message['text']}"}
                self.failed = self.failed or failed
                self._stop(f"{name} failed")
            case "ended":
                outcome = Outcome(message["outcome"])
                self.ended.add(name)
                if outcome is not Outcome.COMPLETED:
                    self._stop(f"{name} ended before its time")
            case "gone" | "lost" as how if name not in self.ended:
                self.lost.add(name)
                if how == "lost":
                    self.unreachable.add(name)
                self._problem(name, f"lost for the run: {message['why']}")
            case "broken":
                self.follow({"did": "problem", "text": f"{message['why']}; the run continues, reconnecting"})

    def _ours_ns(self, name: str, time_ns: int) -> int:
        """Convert a time of a machine's clock to ours; requires time 0 of both."""
        return time_ns - self.zeros[name] + self._zero_ns

    def _problem(self, name: str, text: str) -> None:
        line = f"{name}: {text}"
        if line not in self.problems:
            self.problems.append(line)
            self.follow({"did": "problem", "text": line})

    # --- Barriers

    @property
    def _participants(self) -> set[str]:
        """The machines that still take part."""
        return set(self.peers) - self.ended - self.lost

    @property
    def _over(self) -> bool:
        return not self._participants

    def _release_barriers(self) -> None:
        self._report_phase()
        here = self._participants
        if not here:
            return
        for barrier in Barrier:
            if not here <= self._arrived[barrier] or barrier in self._released:
                continue
            match barrier:
                case Barrier.READY:
                    self._begin()
                case Barrier.DRAINED:
                    if self._everything_delivered():
                        self._release(barrier, drained=True)
                case _:
                    self._release(barrier)

    def _release(self, barrier: Barrier, **fields: Any) -> None:
        self._released.add(barrier)
        for name in self._participants:
            self.peers[name].order({"do": "go on", "at": barrier, **fields})

    def _begin(self) -> None:
        """Set time 0, one instant that is sent to each machine by its own clock."""
        here = [self.peers[name] for name in sorted(self._participants)]
        if any(peer.clock.count < QUESTIONS_MIN for peer in here):
            return
        self._released.add(Barrier.READY)
        self._zero_ns = zero_ns = time.time_ns() + LEAD_NS
        for peer in here:
            best = peer.clock.best
            assert best is not None  # it has answered clock requests
            self.zeros[peer.name] = zero_ns + best.offset_ns
            peer.order({"do": "go on", "at": Barrier.READY, "zero_ns": self.zeros[peer.name]})
        self.follow({"did": "running", "zero_ns": zero_ns, "duration_us": self.duration_us})

    def _everything_delivered(self) -> bool:
        if not self._participants <= self._counts.keys():
            return False
        counts = [self._counts[name] for name in self._participants]
        published = highest(each.published for each in counts)
        return reached(published, [client for each in counts for client in each.delivered], self.contract)

    def _stop(self, why: str) -> None:
        if not self._stopped:
            self._stopped = True
            for name in self._participants:
                self.peers[name].order({"do": "stop", "why": why})

    def _request_times(self) -> None:
        """Request the machines' times, which also renews their leases."""
        few = any(self.peers[name].clock.count < QUESTIONS_MIN for name in self._participants)
        period_s = QUICK_QUESTION_PERIOD_S if few else QUESTION_PERIOD_S
        if time.monotonic() - self._requested_s >= period_s:
            self._requested_s = time.monotonic()
            for peer in self.peers.values():
                if peer.name not in self.lost:
                    peer.ask_time()

    # --- Reports to the follower

    def _report_phase(self) -> None:
        """Report the run's phase: the earliest of all machines' phases."""
        here = [self._phases.get(name, RunPhase.PLANNED) for name in self.peers if name not in self.lost]
        phase = min(here, key=_PHASES.index, default=self._phase)
        if _PHASES.index(phase) > _PHASES.index(self._phase):
            self._phase = phase
            self.follow({"did": "phase", "phase": phase})

    def _report_progress(self) -> None:
        """Report events per second and client, averaged over all clients."""
        clients = sum(self.clients[name] for name in self._rates) or 1
        rate, delivered = (
            sum(self._rates[name][which] * self.clients[name] for name in self._rates) / clients
            for which in (0, 1)
        )
        self.follow({"did": "progress", "events_per_s": round(rate), "delivered": round(delivered)})


def _printable(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message with sanitized texts."""
    return {key: sanitize(value) if isinstance(value, str) else value for key, value in message.items()}


def _count(given: Any) -> int:
    """Return a count as an integer. Raises TypeError, ValueError, OverflowError unless it is a number."""
    return round(float(given))
