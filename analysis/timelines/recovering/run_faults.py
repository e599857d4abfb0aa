"""Faults of a run as requested, and when they were applied."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from analysis.errors import AnalysisError
from analysis.timelines.links.periods import LinkDirection, carriers
from experiments.faults.kinds import kind_named
from experiments.planned.changes import LinkChange, ProcessChange
from experiments.planned.plan import FaultPlan, Plan, Strike
from experiments.records.run_record import RunRecord
from topologies.routes import Hop


@dataclass(frozen=True, slots=True)
class RunFault:
    """A fault as requested, and when its strike was applied (None: never)."""

    name: str
    kind: str
    target: str
    requested_s: float
    applied_ns: int | None
    hops: Mapping[Hop, int] = field(default_factory=dict)  # struck hop -> time applied
    processes: tuple[str, ...] = ()  # hosts of the struck processes
    only_host: str | None = None  # if it acts only on packets from or to this host
    apart: frozenset[frozenset[str]] = frozenset()  # pairs of hosts, if it acts only between them
    ended_ns: int | None = None  # when it ended on its processes by itself, after `for`
    struck_at_us: int | None = None  # planned time; None: when a condition is met

    @property
    def t_ns(self) -> int:
        """The time when it was applied. Raises AnalysisError if it never was."""
        if self.applied_ns is None:
            raise AnalysisError(f"fault {self.name} was never applied, so nothing can be measured from it")
        return self.applied_ns

    @property
    def struck_ns(self) -> int:
        """The time when it was applied to the last of its links: they change one after the other."""
        return max(self.hops.values(), default=self.t_ns)

    @property
    def mends(self) -> bool:
        """Whether it reverts a disturbance instead of causing one."""
        return kind_named(self.kind).mends

    def is_at_once_with(self, other: "RunFault") -> bool:
        """Return whether they share an instant: planned for the same time, or applied at the same time."""
        planned = self.struck_at_us is not None and self.struck_at_us == other.struck_at_us
        return planned or self.t_ns == other.t_ns


def read_faults(record: RunRecord) -> tuple[RunFault, ...]:
    """Return the faults in a run's record."""
    return tuple(map(_Applied.from_record(record).fault, record.plan.faults))


def read_churn(record: RunRecord) -> Iterator[RunFault]:
    """Yield one fault for each process that joined or left as part of a group."""
    groups = {each.name for each in record.plan.churn}
    hosts = {process.name: process.host for process in record.plan.processes}
    for change, applied in record.changes_applied:
        if change.fault in groups and isinstance(change, ProcessChange) and applied.applied_ns is not None:
            yield RunFault(
                name=change.fault,
                kind=str(change.action),
                target=change.process,
                requested_s=change.at_us / 1e6,
                applied_ns=applied.applied_ns,
                processes=(hosts[change.process],),
            )


@dataclass(frozen=True, slots=True)
class _Applied:
    """When each planned change of a run was applied."""

    plan: Plan
    hosts: Mapping[str, str]  # by process
    hop_of: Mapping[LinkDirection, Hop]
    of_link: Mapping[LinkDirection, Sequence[tuple[int, int | None]]]  # planned and applied times, sorted
    of_process: Mapping[tuple[str, int], Mapping[str, int | None]]  # by process and planned time; by fault
    zero_ns: int | None
    end_ns: int | None

    @classmethod
    def from_record(cls, record: RunRecord) -> Self:
        """Return the times in a run's record."""
        plan, times = record.plan, record.times
        held: dict[int, int | None] = {}
        for each in record.changes:
            held.setdefault(each.index, each.applied_ns)
        of_link: defaultdict[LinkDirection, list[tuple[int, int | None]]] = defaultdict(list)
        of_process: defaultdict[tuple[str, int], dict[str, int | None]] = defaultdict(dict)
        for number, change in enumerate(plan.changes):
            if isinstance(change, LinkChange):
                of_link[change.link, change.direction].append((change.at_us, held.get(number)))
            else:
                of_process[change.process, change.at_us].setdefault(change.fault, held.get(number))
        return cls(
            plan,
            {process.name: process.host for process in plan.processes},
            {direction: hop for hop, direction in carriers(plan).items()},
            of_link,
            of_process,
            times.zero_ns,
            times.stopped_ns or times.ended_ns,
        )

    def fault(self, fault: FaultPlan) -> RunFault:
        """Return a fault with the time when its strike was applied."""
        strike, waits = fault.strike, self._waits(fault)
        strike = self._strike_by_name(fault) if strike is None else strike
        on_links = {each: self._on_link(each, strike.at_us) for each in strike.directions}
        on_processes = {each: self._on_process(each, strike.at_us, fault.name) for each in strike.processes}
        held = [t_ns for t_ns in (*on_links.values(), *on_processes.values()) if t_ns is not None]
        hops = {self.hop_of[each]: t_ns for each, t_ns in on_links.items() if each in self.hop_of}
        return RunFault(
            name=fault.name,
            kind=fault.kind,
            target=fault.target,
            requested_s=fault.at_us / 1e6,
            applied_ns=min(held, default=None),
            hops={hop: t_ns for hop, t_ns in hops.items() if t_ns is not None},
            processes=tuple(sorted({self.hosts[name] for name in on_processes})),
            only_host=self._only_host(fault.name),
            apart=frozenset(
                frozenset((self.hosts[change.process], self.hosts[peer]))
                for change in self.plan.changes
                if isinstance(change, ProcessChange) and change.fault == fault.name
                for peer in change.peers
            ),
            ended_ns=self._ended_ns(fault.name),
            struck_at_us=None if waits else strike.at_us,
        )

    def _only_host(self, fault: str) -> str | None:
        """Return the host of the process whose packets a fault selects; None if it acts on others, too."""
        selected = {
            change.selects.process if change.selects else None
            for change in self.plan.changes
            if isinstance(change, LinkChange) and change.fault == fault
        }
        process = selected.pop() if len(selected) == 1 else None
        return None if process is None else self.hosts[process]

    def _ended_ns(self, fault: str) -> int | None:
        """Return when all that a fault does to processes had ended by itself; None if it did not."""
        ends_ns = [
            self.of_process[change.process, change.at_us].get(fault)
            for change in self.plan.changes
            if isinstance(change, ProcessChange) and change.fault == fault and change.action.ends_another
        ]
        known = [t_ns for t_ns in ends_ns if t_ns is not None]
        return max(known, default=None) if len(known) == len(ends_ns) else None

    def _on_link(self, direction: LinkDirection, at_us: int) -> int | None:
        """Return when a link direction had the state planned for a time.

        If it already has that state, no change is planned.
        """
        before = [row for row in self.of_link.get(direction, ()) if row[0] <= at_us]
        planned_us, held_ns = before[-1] if before else (None, self.zero_ns)
        return held_ns if planned_us == at_us or held_ns is None else self._nominal_ns(at_us)

    def _on_process(self, process: str, at_us: int, fault: str) -> int | None:
        """Return when a process had the change planned for a time; several changes may be planned for it."""
        planned = self.of_process.get((process, at_us), {})
        if fault in planned:
            return planned[fault]
        return next(iter(planned.values())) if planned else self._nominal_ns(at_us)

    def _nominal_ns(self, at_us: int) -> int | None:
        """Return a time of the plan, if the run reached it."""
        t_ns = None if self.zero_ns is None else self.zero_ns + 1000 * at_us
        return None if t_ns is None or (self.end_ns is not None and t_ns > self.end_ns) else t_ns

    def _waits(self, fault: FaultPlan) -> bool:
        return any(change.fault == fault.name and change.when for change in self.plan.changes)

    def _strike_by_name(self, fault: FaultPlan) -> Strike:
        """Return the strike of a fault in a plan that does not state it: the first changes with its name."""
        mine = [change for change in self.plan.changes if change.fault == fault.name]
        at_us = min((change.at_us for change in mine), default=fault.at_us)
        first = [change for change in mine if change.at_us == at_us]
        links = [(change.link, change.direction) for change in first if isinstance(change, LinkChange)]
        processes = [change.process for change in first if isinstance(change, ProcessChange)]
        return Strike(at_us, tuple(dict.fromkeys(links)), tuple(dict.fromkeys(processes)))
