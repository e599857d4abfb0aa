"""Membership of a region's chain (paper 3.3): the next decision, given the state of each replica.

Pure: `decide` takes the present chain and the configuration service's information about each replica, and
returns the next chain, or None if no change is needed. The rules, in this order, for each replica of the
chain:

- A member whose process was restarted keeps its position if its disk has the state of a member. The events
  that it acknowledged are there, and its successors have no more than those.
- A member that has lost its state, has been away for too long, or has a full disk is removed; but never
  before
  another member shows that it is alive and continues without it. If all members are away at once, as after a
  power failure, none can have continued alone, and the first one that returns with its disk has everything.
- If every member has lost its state or was given up by the operator, the chain is re-formed with the replica
  that has most of the committed events; everything that others have is void.
- Then the first replica that is present and outside of the chain joins behind the tail, unless its disk is
  full.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from node.protocols.sprinkler.chain.configurations import ReplicaChain
from node.protocols.sprinkler.messages import Status

BEGAN_ANEW = "chain_began_anew"


@dataclass(frozen=True, slots=True)
class Attendance:
    """State of one replica. Order is counted in losses, because several inputs may have the same time."""

    incarnation: int | None = None  # of the connected process, if any
    status: Status | None = None  # the process's last status
    heard: int = 0  # number of losses when it was last heard
    lost: int = 0  # the number of its own loss, if the chain's process is away
    is_overdue: bool = False  # it has been away for longer than the wait
    is_given_up: bool = False  # the operator declared that it will not return


@dataclass(frozen=True, slots=True)
class Decision:
    """The next chain, its number not yet incremented, and the log entry with the reason."""

    chain: ReplicaChain
    event: str
    fields: Mapping[str, Any]
    level: str = "warning"


def decide(chain: ReplicaChain, known: Mapping[str, Attendance]) -> Decision | None:
    """Return the next change of a chain that has been formed. known: every replica of the region."""
    for name in chain.everyone:
        decision = _decide_about(name, chain, known)
        if decision is not None:
            return decision
    return _re_form(chain, known) or _join(chain, known)


def _decide_about(name: str, chain: ReplicaChain, known: Mapping[str, Attendance]) -> Decision | None:
    """Return the decision about a replica of the chain, if any."""
    replica = known[name]
    if replica.incarnation is None:
        why = "given up" if replica.is_given_up else "not connected"
        return _remove(name, why, chain, known) if replica.is_overdue or replica.is_given_up else None
    if replica.status is None:
        return None
    if chain.has(name, replica.incarnation):
        return _remove(name, "disk full", chain, known) if replica.status.is_full else None
    if name in chain.members and _has_state(replica.status, chain):
        at = chain.members.index(name)
        incarnations = (*chain.incarnations[:at], replica.incarnation, *chain.incarnations[at + 1 :])
        fields = {"replica": name, "configuration": replica.status.configuration}
        return Decision(replace(chain, incarnations=incarnations), "replica_returned", fields, "info")
    return _remove(name, "started again", chain, known)


def _remove(name: str, why: str, chain: ReplicaChain, known: Mapping[str, Attendance]) -> Decision | None:
    """Remove a replica, if another member continues."""
    since = known[name].lost
    others = [known[other] for other in chain.members if other != name and _continues(chain, other, known)]
    if name in chain.members and not any(other.heard >= since for other in others):
        return None
    at = chain.everyone.index(name)
    incarnations = chain.incarnations[:at] + chain.incarnations[at + 1 :]
    members = tuple(member for member in chain.members if member != name)
    joining = chain.joining if chain.joining != name else None
    smaller = replace(chain, members=members, joining=joining, incarnations=incarnations)
    return Decision(smaller, "replica_removed", {"replica": name, "why": why})


def _continues(chain: ReplicaChain, name: str, known: Mapping[str, Attendance]) -> bool:
    """Return whether the replica's expected process is present and can store."""
    replica = known[name]
    return (
        replica.incarnation is not None
        and chain.has(name, replica.incarnation)
        and replica.status is not None
        and not replica.status.is_full
    )


def has_all_states(chain: ReplicaChain, known: Mapping[str, Attendance]) -> bool:
    """Return whether all replicas have reported and those of the chain have their state.

    If so, no later chain can have existed that all replicas have forgotten.
    """
    return all(replica.status is not None for replica in known.values()) and not any(
        _is_lost(name, chain, known[name]) for name in chain.everyone
    )


def _re_form(chain: ReplicaChain, known: Mapping[str, Attendance]) -> Decision | None:
    """Re-form the chain, if no member has its state any more."""
    if not all(_is_lost(name, chain, known[name]) for name in chain.members):
        return None
    return re_formed(chain, known)


def re_formed(chain: ReplicaChain, known: Mapping[str, Attendance]) -> Decision | None:
    """Return the chain of the replica with most committed events; None if no replica may begin it."""
    there = [name for name in known if _can_begin(known[name].status, chain)]
    if not there:
        return None
    best = max(there, key=lambda name: _committed(known[name]))  # the first of those with the same number
    number = chain.number + 1
    begun = ReplicaChain(chain.number, number, (best,), None, (known[best].incarnation or 0,))
    return Decision(begun, BEGAN_ANEW, {"replica": best, "committed": _committed(known[best])})


def _is_lost(name: str, chain: ReplicaChain, replica: Attendance) -> bool:
    if replica.incarnation is None:
        return replica.is_given_up
    meant = chain.has(name, replica.incarnation)
    return not meant and replica.status is not None and not _has_state(replica.status, chain)


def _has_state(status: Status, chain: ReplicaChain) -> bool:
    """Return whether this process's state belongs to this chain, as it has been since it began."""
    return status.configuration >= max(1, chain.began)


def _can_begin(status: Status | None, chain: ReplicaChain) -> bool:
    """Return whether its state is a part of the committed events: all of them, or none."""
    return status is not None and (_has_state(status, chain) or not status.cnt)


def _committed(replica: Attendance) -> int:
    return replica.status.cnt if replica.status is not None else 0


def _join(chain: ReplicaChain, known: Mapping[str, Attendance]) -> Decision | None:
    """Let the next replica join behind the tail, one at a time."""
    if chain.joining is not None:
        return None
    for name, replica in known.items():
        if name in chain.members or replica.incarnation is None or replica.status is None:
            continue
        if not replica.status.is_full:
            incarnations = (*chain.incarnations, replica.incarnation)
            joined = replace(chain, joining=name, incarnations=incarnations)
            return Decision(joined, "replica_joins", {"replica": name}, "info")
    return None
