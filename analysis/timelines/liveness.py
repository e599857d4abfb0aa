"""Which processes were alive when: from the beginning, from a join on, until a kill or a leave, or again."""

from collections import defaultdict
from dataclasses import dataclass, field

from analysis.timelines.periods import Json

ENDING = frozenset({"kill", "leave"})
STARTING = frozenset({"restart", "replace", "join"})
STOP, CONTINUE, JOIN = "stop", "continue", "join"
APART = frozenset({"separate", "rejoin"})
"""What is done to a process's packets, not to itself."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """Hosts by the lifetimes of their processes. `starts`: the number of starts, where that is not one."""

    disturbed: frozenset[str]
    gone: frozenset[str]
    starts: dict[str, int] = field(default_factory=dict)


def read_presence(run: Json) -> Liveness:
    """From run.json, whose changes are in order of time. A change that could not be carried out is none."""
    hosts = {process["name"]: process["host"] for process in run["plan"]["processes"]}
    failover_events: dict[str, list[str]] = defaultdict(list)
    for change in run.get("changes") or ():
        if change.get("process") in hosts and change.get("action") not in (None, *APART) and _held(change):
            failover_events[hosts[change["process"]]].append(change["action"])
    planned = {
        hosts[change["process"]]
        for change in run["plan"].get("changes", ())
        if change.get("action") == JOIN and change.get("process") in hosts
    }
    died = {hosts[process["name"]] for process in unexpected_exits(run) if process["name"] in hosts}
    gone = died | {host for host, done in failover_events.items() if not _there(done)}
    gone |= {host for host in planned if JOIN not in failover_events[host]}
    starts = {
        host: sum(act in STARTING for act in done) + (host not in planned)
        for host, done in failover_events.items()
        if any(act in STARTING for act in done)
    }
    return Liveness(frozenset({*failover_events, *died, *planned}), frozenset(gone), starts)


def unexpected_exits(run: Json) -> list[Json]:
    """Processes of run.json that ended without being told to."""
    ended = [process for process in run.get("processes") or () if process.get("exit")]
    return [process for process in ended if not process["exit"].get("expected")]


def _held(change: Json) -> bool:
    """Whether it was carried out; a run that was written before it is known counts as asked."""
    return "applied_ns" not in change or change["applied_ns"] is not None


def _there(done: list[str]) -> bool:
    """Whether the process takes part after all this was done to it."""
    there = True
    for act in done:
        if act in STARTING or act == CONTINUE:
            there = True
        elif act in ENDING or act == STOP:
            there = False
    return there
