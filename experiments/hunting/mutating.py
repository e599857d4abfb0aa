"""A case made from one or two interesting ones. Pure: the same cases and generator give the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from random import Random

from experiments.hunting.bounds import breach
from experiments.hunting.case import (
    AT_ONCE,
    DISTURBANCES_MAX,
    STEP_US,
    Case,
    Disturbance,
    Kind,
    Moment,
    by_time,
)
from experiments.hunting.drawing import Drawing
from experiments.hunting.ground import Ground
from experiments.hunting.placing import draw, draw_upon, length
from topologies.errors import InputError

ATTEMPTS = 30
CHANGES = (1, 1, 1, 2, 2, 3)
SOON_US = 100, 100_000
"""How long after something happened a disturbance is put there, if not at once: any time between these, short
ones as often as long ones, since messages are on their way for any.
"""
REACTION_US = 3_000_000
"""What happens so soon after a disturbance's begin or end is mostly due to it."""
BEFORE_AGAIN_US = 1_000, 2_000_000
"""How soon after a message that did not come one of the two ends: within what it takes to say it again."""
HOLDERS = 0.5
"""How often somebody who has an event ends while it is kept from a client."""
GONE: tuple[Kind, ...] = ("crash", "die", "pause", "power", "power-and-disks")
"""What ends who has something, or who is to say it."""
BOTH = 0.3
"""How often something befalls both who did what is seldom done and to whom it was done."""
ALIKE = 0.5
"""How often settings and seed stay, so that all goes as it went until the first change."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A case; when what was new in it happened, in microseconds since time 0; and what would have kept some
    of its deliveries from coming (`lineage`). seldom: when what is seldom done was done in it, and by whom.
    """

    case: Case
    moments_us: tuple[int, ...]
    starving: tuple[tuple[Disturbance, ...], ...] = ()
    seldom: tuple[Moment, ...] = ()


def mutated(rng: Random, drawing: Drawing, parent: Parent, other: Parent) -> Case | None:
    """A case like `parent`, within the bounds; None if none was found."""
    for _ in range(ATTEMPTS):
        settings = dict(parent.case.settings)
        is_alike = rng.random() < ALIKE
        if not is_alike and rng.random() < 0.5:
            settings = _other_settings(rng, drawing, settings, other)
        try:
            ground = drawing.ground(settings)
        except InputError:
            continue  # these settings do not go together
        found = list(parent.case.disturbances)
        for _ in range(rng.choice(CHANGES)):
            found = rng.choice(_WAYS)(rng, ground, found, parent, other)
        seed = parent.case.seed if is_alike or rng.random() < 0.4 else rng.randrange(1 << 32)
        case = Case(seed, settings, by_time(found)[:DISTURBANCES_MAX])
        if case != parent.case and breach(case.disturbances, ground) is None:
            return case
    return None


def _other_settings(
    rng: Random, drawing: Drawing, settings: dict[str, object], other: Parent
) -> dict[str, object]:
    drawn = drawing.settings(rng) if rng.random() < 0.5 else dict(other.case.settings)
    merged = {path: value for path, value in {**settings, **drawn}.items() if rng.random() < 0.7}
    return dict(sorted(merged.items(), key=lambda item: (item[0].count("."), item[0])))


Found = list[Disturbance]


def _shifted(rng: Random, ground: Ground, found: Found, parent: Parent, _: Parent) -> Found:
    """One disturbance somewhere else in time: a little earlier or later, or right after something new."""
    if not found:
        return found
    at = rng.randrange(len(found))
    moved = found[at].at_us + rng.choice((-1, 1)) * rng.choice((STEP_US, 20_000, 200_000, 1_000_000))
    inside = [moment for moment in parent.moments_us if ground.first_us <= moment < ground.last_us]
    if inside and rng.random() < 0.6:
        moved = rng.choice(inside) + _soon(rng)
    moved = max(ground.first_us, min(moved, ground.last_us - found[at].for_us))
    return [*found[:at], replace(found[at], at_us=moved), *found[at + 1 :]]


def _soon(rng: Random) -> int:
    if rng.random() < 0.4:
        return rng.choice((0, 0, 1))
    return round(exp(rng.uniform(*map(log, SOON_US))))


def _lengthened(rng: Random, ground: Ground, found: Found, _: Parent, __: Parent) -> Found:
    if not found:
        return found
    at = rng.randrange(len(found))
    most_us = min(ground.longest_us, ground.last_us - found[at].at_us)
    if found[at].kind in AT_ONCE or most_us < ground.nemesis.shortest_us:
        return found
    for_us = length(rng, ground, most_us) // STEP_US * STEP_US
    return [*found[:at], replace(found[at], for_us=for_us), *found[at + 1 :]]


def _retargeted(rng: Random, ground: Ground, found: Found, _: Parent, __: Parent) -> Found:
    """One of the same kind, at the same time, elsewhere."""
    if not found:
        return found
    at = rng.randrange(len(found))
    rest = [*found[:at], *found[at + 1 :]]
    drawn = draw(rng, ground, [found[at].kind], rest) if found[at].kind in ground.kinds else None
    if drawn is None:
        return found
    return [*rest, replace(drawn, at_us=found[at].at_us, for_us=found[at].for_us)]


def _added(rng: Random, ground: Ground, found: Found, parent: Parent, other: Parent) -> Found:
    drawn = draw(rng, ground, ground.kinds, found)
    if drawn is None:
        return found
    return _shifted_last(rng, ground, [*found, drawn], parent)


def _shifted_last(rng: Random, ground: Ground, found: Found, parent: Parent) -> Found:
    inside = [moment for moment in parent.moments_us if ground.first_us <= moment < ground.last_us]
    if not inside or rng.random() < 0.4:
        return found
    at_us = rng.choice(inside) + _soon(rng)
    at_us = max(ground.first_us, min(at_us, ground.last_us - found[-1].for_us))
    moved = [*found[:-1], replace(found[-1], at_us=at_us)]
    return moved if breach(moved, ground) is None else found


def _upon(rng: Random, ground: Ground, found: Found, parent: Parent, _: Parent) -> Found:
    """Also something that befalls who did what is seldom done, or to whom it was done, right then."""
    moment = _seldom(rng, ground, found, parent)
    if moment is None:
        return found
    moment = replace(moment, at_us=moment.at_us + _soon(rng))
    of = [(name,) for name in moment.processes] if rng.random() < BOTH else [moment.processes]
    for processes in of:
        drawn = draw_upon(rng, ground, found, replace(moment, processes=processes))
        found = found if drawn is None else [*found, drawn]
    return found


def _unsaid(rng: Random, ground: Ground, found: Found, parent: Parent, _: Parent) -> Found:
    """Also what keeps a message that is seldom sent from coming, and then ends one of the two before it is
    said again.
    """
    moment = _seldom(rng, ground, found, parent)
    if moment is None or len(moment.processes) < 2:
        return found
    kept = draw_upon(rng, ground, found, moment, ("separate", "cut"))
    later_us = moment.at_us + round(exp(rng.uniform(*map(log, BEFORE_AGAIN_US))))
    then = Moment(later_us, (rng.choice(moment.processes),))
    if kept is None or later_us >= ground.last_us:
        return found
    gone = draw_upon(rng, ground, [*found, kept], then, GONE)
    return found if gone is None else [*found, kept, gone]


def _seldom(rng: Random, ground: Ground, found: Found, parent: Parent) -> Moment | None:
    """When what is seldom done was done: soon after a disturbance's begin or end rather than elsewhere."""
    inside = [each for each in parent.seldom if ground.first_us <= each.at_us < ground.last_us]
    if not inside:
        return None
    edges = [edge for each in found for edge in (each.at_us, each.end_us)]
    reactions = [each for each in inside if any(0 <= each.at_us - edge < REACTION_US for edge in edges)]
    return rng.choice(reactions if reactions and rng.random() < 0.7 else inside)


def _removed(rng: Random, _: Ground, found: Found, __: Parent, ___: Parent) -> Found:
    if len(found) < 2:
        return found
    at = rng.randrange(len(found))
    return [*found[:at], *found[at + 1 :]]


def _merged(rng: Random, ground: Ground, found: Found, _: Parent, other: Parent) -> Found:
    """Also some of what the other case has, as far as the bounds allow it."""
    for each in rng.sample(other.case.disturbances, min(3, len(other.case.disturbances))):
        if breach([*found, each], ground) is None:
            found = [*found, each]
    return found


def _starved(rng: Random, ground: Ground, found: Found, parent: Parent, _: Parent) -> Found:
    """Also what keeps an event from a client by all ways that it had, as far as the bounds allow it; and
    often, meanwhile, what ends some of those on the way who have it.
    """
    starving = rng.choice(parent.starving) if parent.starving else ()
    for each in starving:
        for_us = min(each.for_us, ground.last_us - each.at_us, ground.longest_us) // STEP_US * STEP_US
        fitting = replace(each, for_us=for_us)
        if for_us > 0 and breach([*found, fitting], ground) is None:
            found = [*found, fitting]
    if starving and rng.random() < HOLDERS:
        each = rng.choice(starving)
        there = ground.of_region.get(each.target[0].partition("/")[0], [])
        at_us = each.at_us + rng.randint(0, each.for_us)
        if there and at_us < ground.last_us:
            then = Moment(at_us, tuple(rng.sample(there, min(2, len(there)))))
            gone = draw_upon(rng, ground, found, then, GONE)
            found = found if gone is None else [*found, gone]
    return found


_WAYS: Sequence[Callable[[Random, Ground, Found, Parent, Parent], Found]] = (
    _shifted,
    _shifted,
    _lengthened,
    _retargeted,
    _added,
    _added,
    _upon,
    _upon,
    _upon,
    _upon,
    _unsaid,
    _unsaid,
    _unsaid,
    _removed,
    _merged,
    _starved,
    _starved,
    _starved,
)
