"""Who belongs to a region's chain next (paper 3.3): one decision at a time, from what is known of replicas.

Pure: `decide` takes the present chain and what the configuration service knows of each replica, and returns
the next chain, or None if it is as it should be. The rules, in this order, for each replica of the chain:

- A member that is another process now stays where it is if its disk has the state of a member. What it
  vouched for is there, and its successors have no more than that.
- One that has lost its state, has been away for too long, or has a full disk is removed; but never before
  another member shows that it is alive and goes on without it. Where all members are away at once, as after a
  loss of power, nobody can have gone on alone, and whoever is back first with its disk has everything.
- If every member has lost its state or was given up by the operator, the chain begins anew with the replica
  that has most of what was committed; all that others have is void.
- Then the first replica that is there and not in the chain joins behind the tail, unless its disk is full.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from node.protocols.sprinkler.chain.configurations import Chain
from node.protocols.sprinkler.messages import Status

BEGAN_ANEW = "chain_began_anew"


@dataclass(frozen=True, slots=True)
class Attendance:
    """What is known of one replica. What came before what is counted in losses: several things may happen at
    one time.
    """

    incarnation: int | None = None  # of the process that is connected, if one is
    status: Status | None = None  # what that process said of itself
    heard: int = 0  # how many losses there had been when it was last heard
    lost: int = 0  # of which number its own was, if the process of the chain is away
    is_overdue: bool = False  # it has been away for longer than is waited for
    is_given_up: bool = False  # the operator says that it will not come back


@dataclass(frozen=True, slots=True)
class Decision:
    """The next chain, its number not counted yet, and how the log tells why."""

    chain: Chain
    event: str
    fields: Mapping[str, Any]
    level: str = "warning"


def decide(chain: Chain, known: Mapping[str, Attendance]) -> Decision | None:
    """The next change of a chain that has been formed. known: of every replica of the region."""
    for name in chain.everyone:
        decision = _about(name, chain, known)
        if decision is not None:
            return decision
    return _anew(chain, known) or _joins(chain, known)


def _about(name: str, chain: Chain, known: Mapping[str, Attendance]) -> Decision | None:
    """What becomes of one that belongs to the chain, if anything."""
    replica = known[name]
    if replica.incarnation is None:
        why = "given up" if replica.is_given_up else "not connected"
        return _without(name, why, chain, known) if replica.is_overdue or replica.is_given_up else None
    if replica.status is None:
        return None
    if chain.has(name, replica.incarnation):
        return _without(name, "disk full", chain, known) if replica.status.is_full else None
    if name in chain.members and _has_state(replica.status, chain):
        at = chain.members.index(name)
        incarnations = (*chain.incarnations[:at], replica.incarnation, *chain.incarnations[at + 1 :])
        fields = {"replica": name, "configuration": replica.status.configuration}
        return Decision(replace(chain, incarnations=incarnations), "replica_returned", fields, "info")
    return _without(name, "started again", chain, known)


def _without(name: str, why: str, chain: Chain, known: Mapping[str, Attendance]) -> Decision | None:
    """Remove it, if another member goes on."""
    since = known[name].lost
    others = [known[other] for other in chain.members if other != name and _goes_on(chain, other, known)]
    if name in chain.members and not any(other.heard >= since for other in others):
        return None
    at = chain.everyone.index(name)
    incarnations = chain.incarnations[:at] + chain.incarnations[at + 1 :]
    members = tuple(member for member in chain.members if member != name)
    joining = chain.joining if chain.joining != name else None
    smaller = replace(chain, members=members, joining=joining, incarnations=incarnations)
    return Decision(smaller, "replica_removed", {"replica": name, "why": why})


def _goes_on(chain: Chain, name: str, known: Mapping[str, Attendance]) -> bool:
    """Whether the very process that is meant is there and can store."""
    replica = known[name]
    return (
        replica.incarnation is not None
        and chain.has(name, replica.incarnation)
        and replica.status is not None
        and not replica.status.is_full
    )


def is_whole(chain: Chain, known: Mapping[str, Attendance]) -> bool:
    """Whether everyone has spoken, and everyone in the chain still has its state: nobody can have gone on
    in a later one and forgotten it.
    """
    return all(replica.status is not None for replica in known.values()) and not any(
        _is_lost(name, chain, known[name]) for name in chain.everyone
    )


def _anew(chain: Chain, known: Mapping[str, Attendance]) -> Decision | None:
    """Begin anew, if no member has a state any more."""
    if not all(_is_lost(name, chain, known[name]) for name in chain.members):
        return None
    return begin_anew(chain, known)


def begin_anew(chain: Chain, known: Mapping[str, Attendance]) -> Decision | None:
    """The chain of the replica that has most of what was committed; None if none may begin it."""
    there = [name for name in known if _can_begin(known[name].status, chain)]
    if not there:
        return None
    best = max(there, key=lambda name: _committed(known[name]))  # the first of those that have as much
    number = chain.number + 1
    begun = Chain(chain.number, number, (best,), None, (known[best].incarnation or 0,))
    return Decision(begun, BEGAN_ANEW, {"replica": best, "committed": _committed(known[best])})


def _is_lost(name: str, chain: Chain, replica: Attendance) -> bool:
    if replica.incarnation is None:
        return replica.is_given_up
    meant = chain.has(name, replica.incarnation)
    return not meant and replica.status is not None and not _has_state(replica.status, chain)


def _has_state(status: Status, chain: Chain) -> bool:
    """Whether what this process has belongs to this chain, as it has been since it began."""
    return status.configuration >= max(1, chain.began)


def _can_begin(status: Status | None, chain: Chain) -> bool:
    """Whether what it has is a part of what was committed: all of that, or nothing."""
    return status is not None and (_has_state(status, chain) or not status.cnt)


def _committed(replica: Attendance) -> int:
    return replica.status.cnt if replica.status is not None else 0


def _joins(chain: Chain, known: Mapping[str, Attendance]) -> Decision | None:
    """The next one joins behind the tail, one at a time."""
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
