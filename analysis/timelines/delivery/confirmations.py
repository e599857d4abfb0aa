"""Compares subscriptions of the plan with the records of their confirmation.

A subscription that is never confirmed delivers nothing, and so no event of it is missing. Therefore each
planned subscription must be confirmed within the contract's settle time, in each session of its client that
requests it. The settle time restarts at the end of a fault that excuses: one that the contract does not
cover, one of the client's own process, or one that leaves no route between the stream's region and the
client's. For contracts by topic, the route is between the client's region and any region with servers, since
the topic may be kept there. The settle time also restarts at the beginning of a link fault that leaves a
route, which must be found first. If it extends beyond the end of the subscription or session, the
subscription is not judged.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from analysis.arrays import NEVER, Ints, ints, rows
from analysis.timelines import schemas
from analysis.timelines.delivery.content import ContentRecords
from analysis.timelines.delivery.expected import by_topic, excused_times
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.under_way import mended_ns
from experiments.declared import Trait
from experiments.planned.plan import Plan
from node.core.deliveries import RecordKind
from node.core.specification import PlannedSubscription

CLIENTS_NAMED_MAX = 5
Span = tuple[int, int]
"""Start and end time, in nanoseconds."""
Planned = Mapping[str, tuple[PlannedSubscription, ...]]
"""The planned subscriptions of each client."""


def planned_subscriptions(plan: Plan, metadata: RunMetadata) -> Planned:
    """Return each client's subscriptions. If all clients get everything once subscribed, that is every
    stream.
    """
    contract = metadata.declared.contract
    if contract.since != "subscription":
        return {}
    if contract.audience == "all":
        everything = tuple(PlannedSubscription(0, stream) for stream in metadata.owner)
        return dict.fromkeys(metadata.clients, everything)
    return {process.host: process.subscriptions for process in plan.processes if process.subscriptions}


def check_confirmations(
    planned: Planned, records: pa.Table, metadata: RunMetadata, content: ContentRecords | None = None
) -> pa.Table:
    """Return `schemas.CONFIRMATIONS` of some clients.

    records: their rows of `schemas.RECORDS`. content: their subscriptions in the order of `planned`, if the
    contract is by content.
    """
    stop_ns = metadata.stopped_ns
    if not planned or stop_ns is None:
        return schemas.CONFIRMATIONS.empty_table()
    confirmed = _by_content(content, list(planned)) if content else _by_topic(records)
    starts = _session_starts(records)
    excuses = _Excuses(metadata)
    found = []
    for client, subscriptions in planned.items():
        sessions = list(_sessions(client, starts.get(client, {0: metadata.zero_ns}), stop_ns, metadata))
        waits = [
            wait
            for asked in _spans(subscriptions, metadata.zero_ns, stop_ns)
            for wait in _waits(asked, sessions, confirmed, excuses.deadlines(client, asked.number))
        ]
        known = [wait_ns for _, wait_ns in waits if wait_ns is not None]
        found.append(
            {
                "client": client,
                "asked": len(waits),
                "unconfirmed": sum(late for late, _ in waits),
                "wait_max_ns": max(known, default=None),
            }
        )
    return pa.Table.from_pylist(found, schema=schemas.CONFIRMATIONS)


def summary(found: pa.Table) -> dict[str, float | int | None]:
    """Return the figures of summary.json, from rows of `schemas.CONFIRMATIONS`."""
    waits = [wait_ns for wait_ns in found.column("wait_max_ns").to_pylist() if wait_ns is not None]
    return {
        "asked": int(ints(found, "asked").sum()),
        "unconfirmed": int(ints(found, "unconfirmed").sum()),
        "wait_max_s": max(waits) / 1e9 if waits else None,
    }


def notes(found: pa.Table) -> Iterator[str]:
    """Yield notes on clients with unconfirmed subscriptions; only the first ones if there are many."""
    wrong = [row for row in found.to_pylist() if row["unconfirmed"]]
    for row in wrong[:CLIENTS_NAMED_MAX]:
        count = f"{row['unconfirmed']} of {row['asked']} subscriptions"
        yield f"{row['client']}: {count} not confirmed in time, so no events were due for them"
    if len(wrong) > CLIENTS_NAMED_MAX:
        yield f"the same for {len(wrong) - CLIENTS_NAMED_MAX} more clients"


@dataclass(frozen=True, slots=True)
class _PlannedSubscription:
    """One planned subscription: its number, its start and end, and the end of the previous one."""

    number: int
    from_ns: int
    until_ns: int
    before_ns: int


@dataclass(frozen=True, slots=True)
class _Session:
    """One process generation of a client."""

    client: str
    number: int
    from_ns: int
    until_ns: int


Confirmed = Mapping[tuple[str, int, int], Sequence[int]]
"""The times of confirmation, sorted, by client, session and number of the subscription."""


def _spans(
    subscriptions: Sequence[PlannedSubscription], zero_ns: int, stop_ns: int
) -> Iterator[_PlannedSubscription]:
    """Yield a client's subscriptions with their ends."""
    open_ones: dict[int, int] = {}
    ended: dict[int, int] = {}
    for each in subscriptions:
        at_ns = zero_ns + each.at_us * 1000
        if each.on:
            open_ones.setdefault(each.number, at_ns)
        elif each.number in open_ones:
            yield _PlannedSubscription(
                each.number, open_ones.pop(each.number), at_ns, ended.get(each.number, 0)
            )
            ended[each.number] = at_ns
    for number, from_ns in open_ones.items():
        yield _PlannedSubscription(number, from_ns, stop_ns, ended.get(number, 0))


def _sessions(
    client: str, starts: Mapping[int, int], stop_ns: int, metadata: RunMetadata
) -> Iterator[_Session]:
    """Yield each session, from its start to the next start or to the fault that ended it.

    The last session of a client that died by itself is omitted: its end is unknown.
    """
    ends = [fault.t_ns for fault in metadata.applied_changes if client in fault.processes and not fault.mends]
    ended = [*starts.values(), stop_ns][1:]
    for (number, from_ns), following in zip(starts.items(), ended, strict=True):
        of_fault = [t_ns for t_ns in ends if from_ns <= t_ns < following]
        if following == stop_ns and client in metadata.gone and not of_fault:
            return
        yield _Session(client, number, from_ns, min([following, *of_fault]))


def _waits(
    asked: _PlannedSubscription, sessions: Sequence[_Session], confirmed: Confirmed, excused: "_Settling"
) -> Iterator[tuple[bool, int | None]]:
    """Yield, for each session concerned, whether the confirmation was late, and the time that it took."""
    for session in sessions:
        from_ns, until_ns = max(asked.from_ns, session.from_ns), min(asked.until_ns, session.until_ns)
        if from_ns >= until_ns:
            continue
        times = confirmed.get((session.client, session.number, asked.number), ())
        place = bisect_right(times, asked.before_ns)
        at_ns = times[place] if place < len(times) and times[place] < until_ns else None
        due_ns = excused.deadline_ns(from_ns)
        late = due_ns < until_ns and (at_ns is None or at_ns > due_ns)
        yield late, None if at_ns is None else max(0, at_ns - from_ns)


@dataclass(frozen=True, slots=True)
class _Settling:
    """Deadlines for settling, given the spans that excuse, in order of their beginnings."""

    excuses: Sequence[Span]
    settle_ns: int

    def deadline_ns(self, t_ns: int) -> int:
        """Return the deadline for an action that began at `t_ns`."""
        for from_ns, until_ns in self.excuses:
            if from_ns <= t_ns + self.settle_ns and until_ns > t_ns:
                t_ns = until_ns
        return min(t_ns, NEVER - self.settle_ns) + self.settle_ns


@dataclass(frozen=True)
class _Excuses:
    """The spans that excuse a client from getting a stream; equal for all clients without faults of their
    own.
    """

    metadata: RunMetadata
    _known: dict[tuple[str, str, str | None], _Settling] = field(default_factory=dict)

    def deadlines(self, client: str, stream: int) -> _Settling:
        """Return the deadlines for a client and a stream or, by content, for a client and any region."""
        metadata = self.metadata
        region = metadata.hosts[client].region
        owner = metadata.owner.get(stream) if metadata.declared.contract.audience != "content" else None
        own = client if client in metadata.disturbed else ""
        key = (own, region, owner)
        if key not in self._known:
            spans = [*excused_times(metadata), *self._own(own), *self._unreachable(region, owner)]
            self._known[key] = _Settling(sorted(spans), metadata.declared.contract.settle_us * 1000)
        return self._known[key]

    def _own(self, client: str) -> Iterator[Span]:
        for fault in self.metadata.applied_changes:
            if client in fault.processes and not fault.mends:
                yield fault.t_ns, mended_ns(fault, self.metadata)

    def _unreachable(self, region: str, owner: str | None) -> Iterator[Span]:
        """Yield the spans of link faults; an empty span if another route exists and must be found."""
        metadata = self.metadata
        servers = metadata.having(Trait.SERVER) if by_topic(metadata) else ()
        theirs = metadata.owner.values() if owner is None else (owner,)
        others = {*theirs, *(metadata.hosts[name].region for name in servers)} - {region}
        for fault in metadata.applied_changes:
            if not fault.hops or fault.mends:
                continue
            is_reached = all(metadata.reachable(each, region, fault.struck_ns) for each in others)
            yield fault.t_ns, fault.t_ns if is_reached else mended_ns(fault, metadata)


def _session_starts(records: pa.Table) -> dict[str, dict[int, int]]:
    """Return when each client's process started, by session."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    started = rows(records, kind=int(RecordKind.SESSION))
    columns = (ints(started, name).tolist() for name in ("session", "t_ns"))
    for client, session, t_ns in zip(started.column("host").to_pylist(), *columns, strict=True):
        found[client][session] = t_ns
    return found


def _by_topic(records: pa.Table) -> Confirmed:
    confirmed = rows(records, kind=int(RecordKind.SUBSCRIBED))
    columns = (ints(confirmed, name) for name in ("session", "stream", "t_ns"))
    return _in_order(confirmed.column("host").to_pylist(), *columns)


def _by_content(content: ContentRecords, clients: Sequence[str]) -> Confirmed:
    confirmed = np.flatnonzero(content.confirmed_ns != NEVER)
    names = [clients[place] for place in content.client[confirmed].tolist()]
    return _in_order(
        names, content.session[confirmed], content.number[confirmed], content.confirmed_ns[confirmed]
    )


def _in_order(clients: Sequence[str], session: Ints, number: Ints, t_ns: Ints) -> Confirmed:
    found = defaultdict(list)
    for *key, at_ns in zip(clients, session.tolist(), number.tolist(), t_ns.tolist(), strict=True):
        found[(key[0], key[1], key[2])].append(at_ns)
    return {key: sorted(times) for key, times in found.items()}
