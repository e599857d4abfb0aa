"""Draws one more disturbance beside others: target, start and duration. Pure: the same base and generator
give the same result.

Targets depend on their part in the system: one process of a role, some or most of a region's, all of them, or
two of any regions. Half of the durations are close to one of the system's own times. Disturbances begin close
to the starts and ends of others as often as anywhere.
"""

from collections.abc import Sequence, Set
from random import Random
from typing import Literal, NamedTuple

from experiments.checks import role_of
from experiments.declared import Trait
from experiments.hunting.bounds import unsurvivable_reason
from experiments.hunting.case import (
    AT_ONCE,
    ON_LINKS,
    ON_REGIONS,
    Direction,
    HuntDisturbance,
    Kind,
)
from experiments.hunting.targets import HuntTargets
from experiments.nemesis import MEMORY_BYTES_MIN, SHARES, STEP_US, whole_ms

ATTEMPTS = 40  # attempts to place a disturbance; after the last it is dropped
NARROW: tuple[Direction, ...] = ("forward", "backward")
Size = Literal["one", "some", "most", "all"]
BESIDE = 0.5
"""Probability that a disturbance is placed at the start or end of another one."""
IN_PLACE = 0.7
"""Probability that it is then also at the same target or region."""
APART = 0.25
"""Probability that processes disturbed together are of one role in any regions, instead of one region."""
ENDING: tuple[Kind, ...] = ("crash", "crash", "die")
"""Kinds that end a server."""
FOR_GOOD_THEN = 0.5
"""Probability that links cut together are cut permanently."""
SYNCS = (1, 2, 5, 20, 100)
"""Number of consecutive syncs that a slow disk delays."""
SIZES: tuple[Size, ...] = ("one", "one", "one", "one", "some", "most", "all")


class DisturbancePlace(NamedTuple):
    """Preferred regions and processes of a disturbance: in or from these regions if there are any, and on
    these processes as often as on others.
    """

    regions: frozenset[str] = frozenset()
    processes: frozenset[str] = frozenset()


ANYWHERE = DisturbancePlace()


def draw(
    rng: Random,
    targets: HuntTargets,
    kinds: Sequence[Kind],
    others: Sequence[HuntDisturbance],
    place: DisturbancePlace = ANYWHERE,
) -> HuntDisturbance | None:
    """Draw one more disturbance within the bounds, or return None if none was found."""
    for _ in range(ATTEMPTS):
        kind = rng.choice(kinds)
        beside = rng.choice(others) if others and rng.random() < BESIDE else None
        where = place
        if beside is not None and rng.random() < IN_PLACE:
            where = DisturbancePlace(place.regions or beside.regions, frozenset(beside.target))
        found = _disturbance(rng, targets, kind, span(rng, targets, others, beside), where)
        if unsurvivable_reason([*others, found], targets) is None:
            return found
    return None


def thinning_cuts(
    rng: Random, targets: HuntTargets, others: Sequence[HuntDisturbance]
) -> list[HuntDisturbance]:
    """Cut links at the same time, often permanently, until the rest is a spanning tree.

    Stay within the bounds; return [] if no link is redundant.
    """
    at_us, for_us = span(rng, targets, others, None)
    kind: Kind = "sever" if rng.random() < FOR_GOOD_THEN else "cut"
    for_us = 0 if kind in AT_ONCE else for_us
    cuts: list[HuntDisturbance] = []
    parts = {region: region for region in targets.topology.regions}
    for link in rng.sample(targets.links, len(targets.links)):
        one, other = (parts[region] for region in link[:2])
        if one != other:
            parts = {region: one if part == other else part for region, part in parts.items()}
            continue
        cut = HuntDisturbance(kind, at_us, for_us, link)
        if unsurvivable_reason([*others, *cuts, cut], targets) is None:
            cuts.append(cut)
    return cuts


def ended_servers(
    rng: Random, targets: HuntTargets, others: Sequence[HuntDisturbance]
) -> list[HuntDisturbance]:
    """End servers at once or shortly after each other, in any regions.

    Some, or as many as the bounds allow, each for a time of its own or permanently.
    """
    names = [
        name
        for role, groups in targets.groups.items()
        if targets.declared.has(role, Trait.SERVER)
        for group in groups
        for name in group
    ]
    kinds = [kind for kind in ENDING if kind in targets.kinds]
    if not kinds or not names:
        return []
    at_us, _ = span(rng, targets, others, None)
    within_us = rng.choice((0, 0, rng.choice(targets.timeouts_us or (0,))))
    most = rng.choice((2, 2, len(names)))
    found: list[HuntDisturbance] = []
    for name in rng.sample(names, len(names)):
        fitting = [kind for kind in kinds if role_of(name) in targets.of_kind(kind)]
        if not fitting:
            continue
        kind = rng.choice(fitting)
        begin_us = min(at_us + rng.randint(0, within_us), targets.last_us - targets.nemesis.shortest_us)
        for_us = length(rng, targets, min(targets.longest_us, targets.last_us - begin_us))
        each = HuntDisturbance(kind, whole_ms(begin_us), 0 if kind in AT_ONCE else whole_ms(for_us), (name,))
        if unsurvivable_reason([*others, *found, each], targets) is None:
            found.append(each)
        if len(found) == most:
            break
    return found


def span(
    rng: Random, targets: HuntTargets, others: Sequence[HuntDisturbance], beside: HuntDisturbance | None
) -> tuple[int, int]:
    """Draw a start and a duration. beside: the disturbance near which to start."""
    window_us = targets.last_us - targets.first_us
    longest_us = min(targets.longest_us, window_us)
    for_us = length(rng, targets, longest_us)
    latest_us = targets.last_us - for_us
    near_to = others if beside is None else [beside]
    edges = [edge for each in near_to for edge in (each.at_us, each.end_us)]
    begin_us = rng.randint(targets.first_us, latest_us)
    if edges and (beside is not None or rng.random() < 0.3):
        near = rng.choice(edges) + rng.choice((0, STEP_US, rng.randint(-for_us, for_us)))
        begin_us = min(max(near, targets.first_us), latest_us)
    return whole_ms(begin_us), whole_ms(for_us)


def length(rng: Random, targets: HuntTargets, longest_us: int) -> int:
    """Draw a duration: any, or close to one of the system's own times."""
    shortest_us = min(targets.nemesis.shortest_us, longest_us)
    times = [time for time in targets.timeouts_us if time <= longest_us]
    if times and rng.random() < 0.5:
        found = round(rng.choice(times) * rng.choice((0.9, 1.0, 1.1, rng.uniform(0.8, 1.3))))
        return min(max(found, shortest_us), longest_us)
    return rng.randint(shortest_us, longest_us)


def _disturbance(
    rng: Random, targets: HuntTargets, kind: Kind, over: tuple[int, int], where: DisturbancePlace
) -> HuntDisturbance:
    """Draw a disturbance of one kind. over: start and duration."""
    at_us, for_us = over
    near = where.regions
    if kind in ON_LINKS:
        return _on_links(rng, targets, kind, over, near)
    if kind in ON_REGIONS:
        regions = [name for name, processes in targets.of_region.items() if processes]
        region = rng.choice([name for name in regions if name in near] or regions)
        return HuntDisturbance(kind, at_us, for_us, (region,))
    groups = targets.groups[rng.choice(targets.of_kind(kind))]
    group = rng.choice(groups)
    if near:
        group = _group_near(rng, targets, kind, where) or group
    elif kind != "separate" and len(groups) > 1 and rng.random() < APART:
        everywhere = [name for names in groups for name in names]
        return _on_processes(rng, targets, kind, over, rng.sample(everywhere, min(2, len(everywhere))))
    if kind == "separate":
        return _separated(rng, targets, group, over)
    return _on_processes(rng, targets, kind, over, rng.sample(group, _size(rng, len(group))))


def _on_processes(
    rng: Random, targets: HuntTargets, kind: Kind, over: tuple[int, int], group: Sequence[str]
) -> HuntDisturbance:
    """Return a disturbance of all processes of the group."""
    at_us, for_us = over
    chosen = tuple(sorted(group))
    if kind == "slow-disk":
        slower_us = max(STEP_US, whole_ms(for_us // rng.choice(SYNCS)))
        return HuntDisturbance(kind, at_us, for_us, chosen, amount=slower_us)
    if kind == "clock":
        set_us = rng.randint(1, max(1, targets.nemesis.offset_us // STEP_US)) * STEP_US
        return HuntDisturbance(kind, at_us, for_us, chosen, (), rng.choice(NARROW), set_us)
    amount = rng.randint(*targets.nemesis.processor_per_mille) if kind == "throttle" else 0
    if kind == "memory":
        amount = rng.randint(MEMORY_BYTES_MIN, targets.nemesis.memory_bytes)
    return HuntDisturbance(kind, at_us, 0 if kind in AT_ONCE else for_us, chosen, amount=amount)


def _group_near(rng: Random, targets: HuntTargets, kind: Kind, where: DisturbancePlace) -> list[str] | None:
    """Draw a group of processes of one role at that place, or return None."""
    groups = [group for role in targets.of_kind(kind) for group in targets.groups[role] if group]
    groups = [group for group in groups if group[0].partition("/")[0] in where.regions]
    same = [group for group in groups if set(group) & where.processes]
    is_same = same and rng.random() < 0.5
    return rng.choice(same if is_same else groups) if groups else None


def _separated(
    rng: Random, targets: HuntTargets, group: Sequence[str], over: tuple[int, int]
) -> HuntDisturbance:
    """Return a process separated from all others of its region, from one, or from those of one role."""
    at_us, for_us = over
    process = rng.choice(group)
    others = [name for name in targets.of_region[process.partition("/")[0]] if name != process]
    if not others:
        return HuntDisturbance("reset", at_us, 0, (process,))
    of_one_role = _of_one_role(rng, others)
    kept = rng.choice((others, [rng.choice(others)], of_one_role))
    return HuntDisturbance("separate", at_us, for_us, (process,), tuple(kept), _direction(rng))


def _of_one_role(rng: Random, processes: Sequence[str]) -> list[str]:
    role = rng.choice(sorted({role_of(name) for name in processes}))
    return [name for name in processes if role_of(name) == role]


def _on_links(
    rng: Random, targets: HuntTargets, kind: Kind, over: tuple[int, int], near: Set[str]
) -> HuntDisturbance:
    """Draw a disturbance of links, in or from the regions `near` if possible."""
    at_us, for_us = over
    regions = tuple(targets.topology.regions)
    between = [link for link in targets.links if near >= set(link[:2])]
    touching = [link for link in targets.links if near & set(link)]
    link = rng.choice(between or touching or targets.links)
    if kind == "isolate":
        region = rng.choice([name for name in regions if name in near] or regions)
        return HuntDisturbance(kind, at_us, for_us, (region,), (), _direction(rng))
    if kind == "partition":
        side = rng.sample(regions, rng.randint(1, len(regions) - 1))
        rest = [region for region in regions if region not in side]
        if len(regions) > 2 and rng.random() < 0.5:  # partial: some regions reach both sides
            rest = rng.sample(rest, rng.randint(1, len(rest)))
        return HuntDisturbance(kind, at_us, for_us, tuple(sorted(side)), tuple(sorted(rest)))
    if kind == "flap":
        down_us = whole_ms(max(STEP_US, for_us // rng.randint(2, 8)))
        return HuntDisturbance(kind, at_us, for_us, link, amount=down_us)
    amount, process, port = 0, "", 0
    if kind in {"delay", *SHARES}:
        names = [name for region in link[:2] for name in targets.of_region[region]]
        process, port = targets.nemesis.selection(rng, names)
    if kind == "delay":
        amount = rng.randint(1, max(1, targets.nemesis.delay_us // STEP_US)) * STEP_US
    elif kind in SHARES:
        amount = rng.randint(1, max(1, round(targets.nemesis.loss * 1_000)))
    for_us, others = 0 if kind in AT_ONCE else for_us, (process,) if process else ()
    return HuntDisturbance(kind, at_us, for_us, link, others, _direction(rng), amount, port=port)


def _direction(rng: Random) -> Direction:
    return "both" if rng.random() < 0.5 else rng.choice(NARROW)


def _size(rng: Random, count: int) -> int:
    """Draw how many processes of a group are affected."""
    match rng.choice(SIZES):
        case "one":
            return 1
        case "some":
            return max(1, (count - 1) // 2)
        case "most":
            return count // 2 + 1
        case _:
            return count
