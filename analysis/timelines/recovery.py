"""What each fault did to each (stream, client) pair, from the events alone: a Spark step, one group per
stream.

A pair is *affected* by a fault of links if the way of the stream to the client's region, just before the
fault, crossed one of the link directions that the fault changed (packets between regions without a link of
their own cross those of others); by a fault of a process if the way touched
that proxy's region, or the process is the client. A client that was itself killed, stopped, late or gone
shows only what that did to it: by other faults it is not affected. A fault that mends (restore, continue,
restart) affects the pairs that were on a detour and whose direct way it gives back; `returned` is when their
region had the stream from its owner again, for good. The times themselves are defined in `recovery_times`.

Lost events belong to the last fault before their loss became visible, which is when the client got a later
event.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from analysis.timelines import schemas
from analysis.timelines.arrays import Ints
from analysis.timelines.benchmarks import benchmark
from analysis.timelines.facts import Facts, Fault
from analysis.timelines.pieces import NEVER, Pieces
from analysis.timelines.recovery_times import Pair, PairTimes, measure
from analysis.timelines.ways import Sources, change_times, length_us, way
from experiments.declared import Trait
from topologies.routes import Hop

AROUND_NS = 1_000_000_000
"""A client that nothing is due to for so long before a fault, or after it, shows nothing of it."""


@dataclass(frozen=True, slots=True)
class History:
    """What is known of one stream: its pieces at every client, and each region's sources."""

    facts: Facts
    stream: int
    cut: Pieces
    seen: Mapping[str, Sources]

    @property
    def owner(self) -> str:
        """The region whose stream it is."""
        return self.facts.owner[self.stream]

    def way(self, client: str, t_ns: int) -> tuple[Hop, ...] | None:
        """The way to the client's region just before `t_ns`; straight from the owner, where no packet tells
        any and the system's logs never do.
        """
        region = self.facts.hosts[client].region
        if not self.facts.reading.moved and not any(source.names for source in self.seen.values()):
            return () if region == self.owner else ((self.owner, region),)
        return way(self.seen, self.owner, region, t_ns)

    def was_due(self, client: str, t_ns: int) -> bool:
        """Whether events were due to a client just before and just after `t_ns`."""
        if self.cut.due is None:
            return True
        since_ns = self.cut.due_at(client) - t_ns
        return bool(((since_ns < 0) & (since_ns > -AROUND_NS)).any()) and bool(
            ((since_ns >= 0) & (since_ns < AROUND_NS)).any()
        )


def pairs(history: History) -> pa.Table:
    """`schemas.PAIRS` of one stream: every applied fault and client."""
    if not history.facts.applied_faults:
        return schemas.PAIRS.empty_table()
    lost = {client: lost_after(history, client) for client in history.cut.hosts}
    found: list[dict[str, object]] = []
    for number, fault in enumerate(history.facts.applied_faults):
        for client in history.cut.hosts:
            if history.cut.due is not None and (history.cut.due_at(client) == NEVER).all():
                continue
            affected = history.was_due(client, fault.t_ns) and is_affected(history, fault, client)
            row: dict[str, object] = {
                "fault": fault.name,
                "stream": history.stream,
                "client": client,
                "affected": affected,
                "lost": lost[client][number],
                "old_way": _text(history, client, fault.t_ns),
                "reasons": [],
            }
            found.append(row | _times(history, fault, client) if affected else row)
    return pa.Table.from_pylist(found, schema=schemas.PAIRS)


def is_affected(history: History, fault: Fault, client: str) -> bool:
    """Whether the fault concerns the pair."""
    hosts = history.facts.hosts
    owner, region = history.owner, hosts[client].region
    old = history.way(client, fault.t_ns)
    if client in fault.processes:
        return True
    if client in history.facts.disturbed:
        return False
    struck = {hosts[host].region for host in fault.processes if history.facts.has(host, Trait.SERVER)}
    if fault.mends:
        detour = old is None or len(old) > 1
        gives_back = bool(history.facts.crossed([(owner, region)]) & set(fault.hops))
        return (detour and gives_back) or bool(struck & {owner, region})
    if old is None:
        return False
    return bool(set(fault.hops) & history.facts.crossed(old)) or bool(
        struck & {owner, region, *(hop[0] for hop in old)}
    )


def lost_after(history: History, client: str) -> list[int]:
    """How many published events never came to the client, per applied fault: lost between it and the next."""
    cut, came_ns = history.cut, history.cut.at(client)
    seen_ns = np.minimum.accumulate(came_ns[::-1])[::-1]
    missing = (came_ns == NEVER) & (cut.published_ns != NEVER) & cut.wanted_at(client)
    starts = np.array([fault.t_ns for fault in history.facts.applied_faults], np.int64)
    fault = np.searchsorted(starts, seen_ns[missing], side="right") - 1
    lost = np.bincount(fault[fault >= 0], cut.count[missing][fault >= 0], minlength=len(starts))
    return [int(events) for events in lost]


def way_ns(history: History, client: str, fault_ns: int) -> Ints:
    """For each piece: the configured length of the way when it came to the client, less that just before the
    fault; nanoseconds. 0 where either way is not known.
    """
    facts, old = history.facts, history.way(client, fault_ns)
    configured = [
        period.start_ns for row in facts.periods.values() for period in row if period.start_ns is not None
    ]
    ends = np.unique(np.concatenate((change_times(history.seen), np.array(configured, np.int64), [NEVER])))
    lengths = []
    for end_ns in ends.tolist():
        hops = history.way(client, end_ns)
        if hops is None or old is None:
            lengths.append(0)
        else:
            lengths.append(length_us(facts, hops, end_ns - 1) - length_us(facts, old, fault_ns - 1))
    index = np.searchsorted(ends, history.cut.at(client), side="left")
    return 1000 * np.array(lengths, np.int64)[index]


def _times(history: History, fault: Fault, client: str) -> dict[str, object]:
    """What an affected pair's row has besides."""
    cut, region = history.cut, history.facts.hosts[client].region
    since_ns = _struck_ns(history, fault, client)
    pair = Pair(cut.count, cut.due_at(client), cut.at(client), way_ns(history, client, fault.t_ns))
    stopped_ns = history.facts.stopped_ns or _last(cut.published_ns)
    times = measure(pair, since_ns, until_ns=stopped_ns)
    after_ns = history.facts.next_fault_ns(fault) or stopped_ns
    rfc = benchmark(pair, since_ns, until_ns=min(after_ns, stopped_ns))
    times = times.later(since_ns - fault.t_ns)
    returned_ns = None
    if fault.mends and history.facts.crossed([(history.owner, region)]) & set(fault.hops):
        returned_ns, times = _returned(history, fault, region, times)
    known = [ns for ns in (times.switch_ns, times.settled_ns, returned_ns) if ns is not None]
    return {
        "switch_ns": times.switch_ns,
        "catch_up_ns": times.catch_up_ns,
        "settled_ns": times.settled_ns,
        "backlog_events": times.backlog_events,
        "returned_ns": returned_ns,
        "rate_derived_ns": rfc.rate_derived_ns,
        "loss_derived_ns": rfc.loss_derived_ns,
        "connectivity_lost_ns": rfc.connectivity_lost_ns,
        "impaired": rfc.impaired,
        "new_way": _text(history, client, fault.t_ns + max(known) + 1) if known else None,
        "reasons": [f"{name}: {reason}" for name, reason in sorted(times.reasons.items())],
    }


def _struck_ns(history: History, fault: Fault, client: str) -> int:
    """When the fault reached the pair: a link's directions, and several links, change one after the other."""
    direct = (history.owner, history.facts.hosts[client].region)
    old = history.way(client, fault.t_ns) or ()
    crossed = history.facts.crossed((direct,) if fault.mends else old)
    changed = [fault.hops[hop] for hop in sorted(crossed) if hop in fault.hops]
    return max(changed, default=fault.t_ns)


def _returned(history: History, fault: Fault, region: str, times: PairTimes) -> tuple[int | None, PairTimes]:
    """When the region had the stream from its owner again and kept it so until the next fault."""
    end_ns = history.facts.next_fault_ns(fault) or NEVER
    source = history.seen.get(region)
    if source is None or source.before(end_ns) != history.owner:
        reasons = {**times.reasons, "returned_s": "the stream did not return to its direct way"}
        return None, replace(times, reasons=reasons)
    index = int(np.searchsorted(source.since_ns, end_ns, side="left")) - 1
    return max(0, int(source.since_ns[index]) - fault.t_ns), times


def _last(t_ns: Ints) -> int:
    known = t_ns[t_ns != NEVER]
    return int(known.max()) if len(known) else 0


def _text(history: History, client: str, t_ns: int) -> str | None:
    """The way just before `t_ns`, as its regions."""
    hops = history.way(client, t_ns)
    return None if hops is None else " ".join([history.owner, *(taker for _, taker in hops)])
