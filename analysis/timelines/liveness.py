"""Which processes were alive at what time: from the start or a join until a kill or a leave, or again."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import Plan
from experiments.records.run_record import RunRecord

ENDING = frozenset({ProcessAction.KILL, ProcessAction.LEAVE})
STARTING = frozenset({ProcessAction.RESTART, ProcessAction.REPLACE, ProcessAction.JOIN})


@dataclass(frozen=True, slots=True)
class Liveness:
    """Hosts by the lifetimes of their processes. `starts`: the number of starts, if that is not one."""

    disturbed: frozenset[str]
    gone: frozenset[str]
    starts: dict[str, int] = field(default_factory=dict)


def read_presence(record: RunRecord) -> Liveness:
    """Return the lifetimes in a record, whose changes are sorted by time. Changes that failed do not
    count.
    """
    done = (change for change, applied in record.changes_applied if applied.applied_ns is not None)
    died = (process.name for process in record.processes if process.died)
    return _presence(record.plan, done, died)


def planned_presence(plan: Plan) -> Liveness:
    """Return the processes' lifetimes if all goes as planned."""
    return _presence(plan, plan.changes, ())


def _presence(plan: Plan, done: Iterable[object], dead: Iterable[str]) -> Liveness:
    hosts = {process.name: process.host for process in plan.processes}
    failover_events: dict[str, list[ProcessAction]] = defaultdict(list)
    for change in done:
        if isinstance(change, ProcessChange) and not change.action.is_of_environment:
            failover_events[hosts[change.process]].append(change.action)
    joining = {hosts[name] for name in plan.joining}
    died = {hosts[name] for name in dead if name in hosts}
    gone = died | {host for host, of_host in failover_events.items() if not _there(of_host)}
    gone |= {host for host in joining if ProcessAction.JOIN not in failover_events[host]}
    starts = {
        host: sum(act in STARTING for act in of_host) + (host not in joining)
        for host, of_host in failover_events.items()
        if any(act in STARTING for act in of_host)
    }
    return Liveness(frozenset({*failover_events, *died, *joining}), frozenset(gone), starts)


def _there(done: list[ProcessAction]) -> bool:
    """Return whether the process takes part after these actions."""
    there = True
    for act in done:
        if act in STARTING or act is ProcessAction.CONTINUE:
            there = True
        elif act in ENDING or act is ProcessAction.STOP:
            there = False
    return there
