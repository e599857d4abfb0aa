"""Which cases a system promises to survive. Hunts run only these, so that each breach is the system's fault.

The rules are those of random faults (`experiments.planned.nemesis_schedule`): nothing is disturbed at the
start and in the quiet time at the end. A process has at most one disturbance at a time, and then a pause.
At any time at least one replica is undisturbed and settled and, while others are disturbed, connected to
the coordinator that decides which replicas count. A region loses power only while none of its processes is
disturbed, and only if there are replicas or the experiment's nemesis asks for it. If it then loses data
that only it had, losses do not count as a breach (`case_experiment.forgetting_regions`), but everything else
does.

More rules are for cases that a nemesis seldom draws but a search does:

- links that are not permanently cut connect all regions in both directions, and include every link over which
  a process publishes in another region's stream: only reads take a detour around a cut;
- if no role is replicated, servers keep copies for each other: at most `FORGETTING_MAX` of them lose their
  memory, or arrive and have none yet, or are alone, before the others have noticed and settled. If content
  decides who gets an event and subscriptions end during the run, the limit is the number of copies: servers
  that have all forgotten a subscription learn of it only when its subscriber renews it;
- the servers of regions that are cut off from others do not all lose their memory meanwhile: no other process
  has the data;
- if an event's content decides who gets it, regions that are cut off from each other cannot learn of each
  other's new subscriptions, and no system can compensate for that: links that are up in both directions
  connect all regions at any time.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product

from experiments.checks import problems, role_of
from experiments.declared import Trait, known_system, programs_of
from experiments.hunting.case import (
    COMING_AND_GOING,
    FOR_GOOD,
    FORGETTING,
    ON_DISKS,
    ON_LINKS,
    ON_PROCESSES,
    ON_REGIONS,
    HuntCase,
    HuntDisturbance,
    Kind,
)
from experiments.hunting.case_experiment import experiment_of
from experiments.hunting.targets import HuntTargets, hunt_targets
from experiments.model import Experiment
from experiments.nemesis import SHARES, Nemesis
from experiments.planned.nemesis_schedule import overlap
from topologies.errors import InputError
from topologies.routes import Hop, connected, joined, reached_from

FORGETTING_MAX = 2
OUTAGES: tuple[Kind, ...] = ("cut", "isolate", "partition", "flap", "sever", "power", "power-and-disks")
LATE: tuple[Kind, ...] = ("slow-disk", "clock")
"""Disturbances whose effect ends later: with the last slow sync, or when a clock that was set back shows its
latest time again.
"""
TAKING: tuple[Kind, ...] = (
    "crash", "die", "pause", "fill", "clock", "throttle", "memory", *COMING_AND_GOING, *ON_REGIONS
)  # fmt: skip
"""Disturbances that exclude any other on the same process."""
Span = tuple[int, int]


def unsurvivable_reason(disturbances: Sequence[HuntDisturbance], targets: HuntTargets) -> str | None:
    """Return why a system need not survive these disturbances, or None."""
    all_processes = {name for names in targets.of_region.values() for name in names}
    for each in disturbances:
        over_us = _over(each, targets)[1] if each.kind in LATE else each.end_us
        if not targets.first_us <= each.at_us <= over_us <= targets.last_us:
            return f"{each.kind} is not within the time for disturbances"
        if each.for_us > targets.longest_us:
            return f"{each.kind} lasts too long"
        if each.kind in {"cut", "flap", "delay", *SHARES, "sever"} and targets.link(each.target) is None:
            return f"{each.kind} names an unknown link"
        if each.kind == "delay" and each.amount < _jitter_us(each.target, targets):
            return "delay is less than the link's jitter"
        if each.kind in {"isolate", "partition", *ON_REGIONS} and not {*each.target, *each.others} <= set(
            targets.of_region
        ):
            return f"{each.kind} names an unknown region"
        if each.kind == "partition" and not any(
            targets.topology.links_at(ends) for ends in product(each.target, each.others)
        ):
            return "partition separates regions that no link joins"
        if each.kind in ON_DISKS and not targets.of_kind(each.kind):
            return f"{each.kind} names an unknown disk"
        named = each.others if each.kind in {"delay", *SHARES} else ()
        named = (*each.target, *each.others) if each.kind in ON_PROCESSES else named
        if not all_processes.issuperset(named):
            return f"{each.kind} names an unknown process"
    taken = list(_taken(disturbances, targets))
    for number, (process, span, kind) in enumerate(taken):
        for other, its_span, its_kind in taken[:number]:
            if other == process and overlap(span, its_span):
                return f"{process} is disturbed by {its_kind} and {kind} at once"
    return (
        _lost_replicas(taken, list(_away(disturbances, targets)), targets)
        or _lost_memory([*taken, *_alone(disturbances, targets)], disturbances, targets)
        or _divided(disturbances, targets)
    )


def is_valid(case: HuntCase, base: Experiment, nemesis: Nemesis) -> bool:
    """Return whether a case can be run and its system must survive it."""
    try:
        targets = hunt_targets(base, case.settings, nemesis)
        if unsurvivable_reason(case.disturbances, targets) is not None:
            return False
        for _ in problems(experiment_of(base, case, targets.topology), targets.topology):
            return False
    except InputError:
        return False
    return True


def _jitter_us(target: tuple[str, ...], targets: HuntTargets) -> int:
    link = targets.link(target)
    assert link is not None  # checked before
    return max(link.forward_parameters.jitter_us, link.backward_parameters.jitter_us)


def _taken(disturbances: Sequence[HuntDisturbance], targets: HuntTargets) -> Iterator[tuple[str, Span, Kind]]:
    for each in disturbances:
        if each.kind in TAKING:
            processes = targets.of_region[each.target[0]] if each.kind in ON_REGIONS else each.target
            for process in processes:
                yield process, _span(each, targets), each.kind


def _span(each: HuntDisturbance, targets: HuntTargets) -> Span:
    """Return the period in which its processes cannot have another disturbance: they are absent or settle."""
    begin_us, end_us = _over(each, targets)
    return 0 if each.kind == "join" else begin_us, end_us + targets.nemesis.settle_us


def _over(each: HuntDisturbance, targets: HuntTargets) -> Span:
    """Return the period of the disturbance."""
    if each.kind in FOR_GOOD:
        return each.at_us, targets.experiment.duration_us
    return each.at_us, each.end_us + (each.amount if each.kind in LATE else 0)


def _away(disturbances: Sequence[HuntDisturbance], targets: HuntTargets) -> Iterator[tuple[str, Span]]:
    """Yield replicas that the coordinator cannot reach, with the period: it continues without them."""
    declared = targets.declared
    for each in disturbances:
        if each.kind != "separate":
            continue
        for side, other in permutations((each.target, each.others)):
            if any(declared.has(role_of(process), Trait.COORDINATOR) for process in side):
                yield from ((process, _span(each, targets)) for process in other)


def _lost_replicas(
    taken: Sequence[tuple[str, Span, Kind]], away: Sequence[tuple[str, Span]], targets: HuntTargets
) -> str | None:
    single = [each for each in taken if each[2] not in ON_REGIONS]
    for role in targets.groups:
        if not targets.declared.has(role, Trait.REPLICATED):
            continue
        for group in targets.groups[role]:
            spans = [(process, span) for process, span, _ in single if process in group]
            out = [*spans, *(each for each in away if each[0] in group)]
            instants = [begin_us for _, (begin_us, _) in out]
            if any(_at(instant, spans) and len(_at(instant, out)) >= len(group) for instant in instants):
                return f"no replica of {group[0].partition('/')[0]} is undisturbed"
    lone = [process for process, _, _ in single if _is_lone_replica(process, targets)]
    return f"{lone[0]} has no replica" if lone else None


def _is_lone_replica(process: str, targets: HuntTargets) -> bool:
    role = role_of(process)
    return targets.declared.has(role, Trait.REPLICATED) and not any(
        process in group for group in targets.groups.get(role, ())
    )


def _lost_memory(
    taken: Sequence[tuple[str, Span, Kind]], disturbances: Sequence[HuntDisturbance], targets: HuntTargets
) -> str | None:
    declared = targets.declared
    if declared.having(Trait.REPLICATED):
        return None
    settle_us = targets.nemesis.settle_us
    spans = [
        (process, (span[1] - settle_us, span[1]) if kind == "join" else span)
        for process, span, kind in taken
        if kind in (*FORGETTING, "join", "separate") and declared.has(role_of(process), Trait.SERVER)
    ]
    experiment, most = targets.experiment, FORGETTING_MAX
    if declared.contract.audience == "content" and experiment.workload.is_changing:
        most = known_system(experiment.system).copies(experiment.all_parameters())
    if _most_at_once([span for _, span in spans]) > most:
        return "too many servers lose their memory at once"
    return _lost_apart(spans, disturbances, targets)


def _lost_apart(
    spans: Sequence[tuple[str, Span]], disturbances: Sequence[HuntDisturbance], targets: HuntTargets
) -> str | None:
    """Return a breach if all servers of some regions lose their memory at once while those are cut off.

    No other server has the data of their clients then.
    """
    outages = [each for each in disturbances if each.kind in ON_LINKS and each.kind in OUTAGES]
    if programs_of(targets.experiment.system) is not None:
        return None  # programs store their own data, if they promise to
    for _, (instant, _) in spans:
        those = [(process, span) for process, span in spans if span[0] <= instant < span[1]]
        down = [each for each in outages if any(overlap(span, _over(each, targets)) for _, span in those)]
        lost, left = {process for process, _ in those}, _links_left(down, targets)
        for region in targets.topology.regions:
            part = reached_from(region, left)
            servers = {
                name
                for each in part
                for name in targets.of_region[each]
                if targets.declared.has(role_of(name), Trait.SERVER)
            }
            if servers and servers <= lost:
                return "all servers of regions that are cut off lose their memory at once"
    return None


def _alone(disturbances: Sequence[HuntDisturbance], targets: HuntTargets) -> Iterator[tuple[str, Span, Kind]]:
    """Yield processes separated from others of their region while the region is cut off from another one.

    The only other copies of their data may be with the few processes that they still reach.
    """
    outages = [each for each in disturbances if each.kind in OUTAGES]
    for each in disturbances:
        if each.kind != "separate":
            continue
        if any(
            overlap(_over(each, targets), _over(its, targets)) and each.regions & its.regions
            for its in outages
        ):
            yield from ((process, _span(each, targets), each.kind) for process in each.target)


def _divided(disturbances: Sequence[HuntDisturbance], targets: HuntTargets) -> str | None:
    for_good = [each for each in disturbances if each.kind == "sever"]
    if not _are_connected(for_good, targets):
        return "regions are cut off from each other permanently"
    severed = (targets.link(each.target) for each in for_good)
    if any(link is not None and link.name in targets.straight for link in severed):
        return "a publisher is cut off permanently from the region of its stream"
    if targets.declared.contract.audience != "content":
        return None
    outages = [each for each in disturbances if each.kind in OUTAGES]
    for instant in {each.at_us for each in outages}:
        now = (instant, instant + 1)
        down = [each for each in outages if overlap(now, _over(each, targets))]
        if not _are_connected(down, targets):
            return "regions are cut off from each other"
    return None


def _are_connected(outages: Sequence[HuntDisturbance], targets: HuntTargets) -> bool:
    """Return whether links that are up in both directions connect all regions during these outages."""
    return connected(tuple(targets.topology.regions), _links_left(outages, targets))


def _links_left(outages: Sequence[HuntDisturbance], targets: HuntTargets) -> list[Hop]:
    """Return the neighbours between which packets go both ways during these outages."""
    lost: set[str] = set()
    for each in outages:
        one, other = set(each.target), set(each.others)
        if each.kind == "isolate":
            lost |= {link.name for link in targets.topology.links if one & set(link.between)}
        elif each.kind == "partition":
            ends = ((link.name, set(link.between)) for link in targets.topology.links)
            lost |= {name for name, between in ends if one & between and other & between}
        elif each.kind in ON_LINKS and (link := targets.link(each.target)) is not None:
            lost.add(link.name)
    return joined(targets.carriers, lost)


def _at(instant_us: int, spans: Sequence[tuple[str, Span]]) -> set[str]:
    """Return the processes whose span contains the instant."""
    return {process for process, (begin_us, end_us) in spans if begin_us <= instant_us < end_us}


def _most_at_once(spans: Sequence[Span]) -> int:
    return max((sum(begin <= at < end for begin, end in spans) for at, _ in spans), default=0)
