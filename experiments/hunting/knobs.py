"""Which settings a hunt draws, beside those that the experiment's nemesis varies, and from which values.
Parameters of programs are drawn only if the nemesis says so: nothing is known of what they mean.

Times and counts of the system's parameters at half and twice what they are, so that what a system promises
within bounded time still fits into a run; limits of memory and large counts also at a small share, where a
short run reaches them; choices and switches that the experiment does not settle itself; the duration, the
rate, how many processes there are, and the topology. A value that the experiment, or the system, refuses is
left out by whoever draws.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from experiments.declared import Trait, known, programs_of
from experiments.hunting.ground import ground_of
from experiments.model import Experiment
from experiments.nemesis import Nemesis
from experiments.planned.draining import LOSSLESS
from experiments.roles import DEFAULT
from experiments.workloads.stream import StreamWorkload
from topologies.errors import InputError
from topologies.loader import load_topology
from topologies.quantities import DURATION, EVENT_RATE, SIZE, Quantity, quantity_of, yaml_name

Settings = dict[str, Any]
LONG_US = 8_000_000
"""Periods from here on end seldom or never within a run."""
LONG_FACTORS = (1 / 16, 1 / 4)
TOPOLOGIES = ("two-regions", "three-regions", "four-regions", "line-3", "ring-4", "star-4")
FACTORS = (0.5, 2)
SMALL_FACTORS = (1 / 1024, 1 / 64)
"""Also of limits of memory, and of counts from `MANY` on, unless they limit what is promised."""
MANY = 64
RATE_FACTORS = (0.02, 0.05, 1)
BATCHING_FACTORS = (8, 4, 2, 1, 0.5)
"""Of periods in which what is to be sent gathers; those that cost little first."""
PRESSING = 0.1
"""Of the rate, where limits are small together."""
INSTEAD_OF_NONE = (4, 16)
"""Of counts that are 0."""
RATE_MIN = 5
"""Events a second."""
RATE_FEWEST = 0.5
"""With that, nothing follows soon that would make up for what went wrong."""
SHORTEST_US = 4_000_000
"""At least so long is left for disturbances."""


def knobs_of(base: Experiment, nemesis: Nemesis) -> dict[str, list[Any]]:
    """The values of each setting that may be drawn, by dotted path; those that are possible by themselves."""
    ours = {} if programs_of(base.system) is not None else dict(_parameters(base))
    asked = {**ours, **nemesis.vary}
    for path, values in _sizes(base, nemesis):
        asked[path] = [*values, *(value for value in asked.get(path, ()) if value not in values)]
    found = {}
    for path, values in asked.items():
        possible = [value for value in values if _is_possible(base, {path: value}, nemesis)]
        if possible:
            found[path] = possible
    for path, values in _least(base, nemesis):
        found[path] = [*values, *found.get(path, ())]
    return found


def _least(base: Experiment, nemesis: Nemesis) -> Iterator[tuple[str, list[Any]]]:
    """The least possible power of two of each limit and large count, where that is less than what is drawn
    of it anyway.
    """
    for path, (name, value) in _limits(base).items():
        quantity = quantity_of(name)
        exponents = range(max(0, int(value * min(SMALL_FACTORS)).bit_length() - 1))
        texts = [quantity.format(1 << power) if quantity else 1 << power for power in exponents]
        at = bisect_left(texts, True, key=lambda text: _is_possible(base, {path: text}, nemesis))
        if at < len(texts):
            yield path, [texts[at]]


def _limits(base: Experiment) -> dict[str, tuple[str, Any]]:
    """The parameters that may be small: by path, the name and the value."""
    if programs_of(base.system) is not None:
        return {}
    system, current = known(base.system), base.all_parameters()
    names = (each.name for each in fields(system.parameters))
    return {
        f"parameters.{yaml_name(name)}": (name, current[name])
        for name in names
        if _may_be_small(name, current[name], system)
    }


def _may_be_small(name: str, value: Any, system: Any) -> bool:
    """Whether it is a limit of memory or a large count, and no limit of what is promised."""
    quantity = quantity_of(name)
    is_large = quantity is SIZE or (quantity is None and type(value) is int and value >= MANY)
    return is_large and name not in (*system.promise_limits, *system.declared.ports)


def sooner(base: Experiment, nemesis: Nemesis) -> list[Settings]:
    """Long periods of the system's parameters, all made shorter together so that they end within a run: alone
    they are often impossible. What limits what is promised stays.
    """
    long = {path: us for path, us in _periods(base).items() if us >= LONG_US}
    asked = [
        {path: DURATION.format(round(us * factor)) for path, us in long.items()} for factor in LONG_FACTORS
    ]
    return [settings for settings in asked if settings and _is_possible(base, settings, nemesis)]


def hasty(base: Experiment, nemesis: Nemesis) -> list[Settings]:
    """All periods of the system's parameters half as long, as far as that is possible together, but for those
    of batching, which decide what a run costs, and those that limit what is promised.
    """
    batching = {f"parameters.{yaml_name(name)}" for name in known(base.system).batching}
    together: Settings = {}
    for path, us in _periods(base).items():
        shorter = {path: DURATION.format(round(us / 2))}
        if path not in batching and _is_possible(base, {**together, **shorter}, nemesis):
            together |= shorter
    return [together] if together else []


def _periods(base: Experiment) -> dict[str, int]:
    """Times among the parameters, by path, but for those that limit what is promised; none of programs."""
    if programs_of(base.system) is not None:
        return {}
    system, current = known(base.system), base.all_parameters()
    names = (each.name for each in fields(system.parameters))
    return {
        f"parameters.{yaml_name(name)}": current[name]
        for name in names
        if quantity_of(name) is DURATION and current[name] and name not in system.promise_limits
    }


def meanwhile(base: Experiment, nemesis: Nemesis) -> list[Settings]:
    """Subscribers that subscribe, or change what they subscribe to, while things are disturbed."""
    within = DURATION.format(nemesis.start_us + SHORTEST_US)
    later = {"workload.subscriptions.within": within}
    asked = [later, {**later, "workload.subscriptions.change": DURATION.format(SHORTEST_US)}]
    return [settings for settings in asked if _is_possible(base, settings, nemesis)]


def pressed(base: Experiment, nemesis: Nemesis) -> list[Settings]:
    """All limits of memory and large counts small at once, so that what one keeps from growing meets what
    another does, and enough events for that.
    """
    drawn = [(path, values) for path, values in _parameters(base) if path in _limits(base)]
    least, rate = dict(_least(base, nemesis)), getattr(base.workload, "rate_per_s", None)
    many = {"workload.rate": EVENT_RATE.format(max(RATE_MIN, round(rate * PRESSING)))} if rate else {}
    asked = [
        {path: least.get(path, values)[0] for path, values in drawn},
        *({path: values[at] for path, values in drawn} for at in range(len(SMALL_FACTORS))),
    ]
    found = []
    for settings in asked:
        together: Settings = {}
        for path, value in settings.items():
            if _is_possible(base, {**together, path: value}, nemesis):
                together[path] = value
        if together:
            found.append({**together, **many})
    return found


def servers(base: Experiment) -> tuple[str, ...]:
    """Settings that say how many servers there are."""
    return tuple(f"roles.{role}" for role in known(base.system).declared.having(Trait.SERVER))


def costly(base: Experiment) -> tuple[str, ...]:
    """Settings that decide what a run costs."""
    system = known(base.system)
    roles = system.declared.having(Trait.SUBSCRIBER)
    batching = (f"parameters.{yaml_name(name)}" for name in system.batching)
    return ("duration", "workload.rate", *batching, *(f"roles.{role}" for role in roles))


def _is_possible(base: Experiment, settings: Settings, nemesis: Nemesis) -> bool:
    try:
        ground = ground_of(base, settings, nemesis)
    except InputError:
        return False
    was, now = base.declared().contract, ground.declared.contract
    return now.delivery in LOSSLESS or was.delivery not in LOSSLESS


def _parameters(base: Experiment) -> Iterator[tuple[str, list[Any]]]:
    """Values of the system's own parameters."""
    system = known(base.system)
    types = get_type_hints(system.parameters)
    current = base.all_parameters()
    for each in fields(system.parameters):
        name, value = yaml_name(each.name), current[each.name]
        if each.name in system.declared.ports:
            continue
        quantity = quantity_of(each.name)
        is_small_too = _may_be_small(each.name, value, system)
        factors: Sequence[float] = (*SMALL_FACTORS, *FACTORS) if is_small_too else FACTORS
        if each.name in system.batching:
            factors = BATCHING_FACTORS
        if values := _values(value, types[each.name], quantity, factors, settled=name in base.parameters):
            yield f"parameters.{name}", values


def _values(
    value: Any, kind: Any, quantity: Quantity | None, factors: Sequence[float], *, settled: bool
) -> list[Any]:
    if quantity is not None:
        scaled = [value * factor for factor in factors]
        return [quantity.format(round(each) if quantity.whole else each) for each in scaled]
    if kind is bool:
        return [] if settled else [not value]
    if get_origin(kind) is Literal:
        return [] if settled else [each for each in get_args(kind) if each != value]
    if kind is int:
        if not value:
            return list(INSTEAD_OF_NONE)
        return sorted({max(1, round(value * factor)) for factor in factors} - {value})
    if kind is float:
        return [value * factor for factor in factors]
    return []


def _sizes(base: Experiment, nemesis: Nemesis) -> Iterator[tuple[str, Sequence[Any]]]:
    """How long it takes, how much is published, by how many, for how many, and where."""
    around_us = nemesis.start_us + nemesis.quiet_us
    shorter = (SHORTEST_US, 2 * SHORTEST_US, 3 * SHORTEST_US)
    lasting = [around_us + us for us in shorter if around_us + us < base.duration_us]
    yield "duration", [DURATION.format(us) for us in (*lasting, base.duration_us)]
    rate = getattr(base.workload, "rate_per_s", None)
    if rate:
        few = [max(RATE_MIN, round(rate * factor)) for factor in RATE_FACTORS]
        yield "workload.rate", [EVENT_RATE.format(each) for each in (*few, RATE_FEWEST)]
    if getattr(base.workload, "event_size_bytes", None):
        yield "workload.event_size", ["1000B"]
    if isinstance(base.workload, StreamWorkload):
        yield from _streams(base)
    if list(base.roles) == [DEFAULT]:
        yield from _counts(base, base.roles[DEFAULT])
    yield "topology", [name for name in TOPOLOGIES if name != base.topology]


def _streams(base: Experiment) -> Iterator[tuple[str, Sequence[Any]]]:
    """Several streams of a region, also with publishers elsewhere; and rules by which few events collect."""
    one, other, *_ = [*load_topology(base.topology).regions, ""]
    shared = {"region": one, "name": "shared", "publishers": [one, other]}
    yield "workload.streams", [2, 3, [{"region": one}, shared, {"region": other}]]
    if base.workload.as_plan().get("collect"):
        yield "workload.collect", [{"last": 20}, {"last": 100}, {"older_than": "1s"}]


def _counts(base: Experiment, counts: Mapping[str, int]) -> Iterator[tuple[str, Sequence[int]]]:
    declared = known(base.system).declared
    fixed = (Trait.COORDINATOR,) if programs_of(base.system) is None else (Trait.COORDINATOR, Trait.SERVER)
    for role, count in counts.items():
        if count and not any(declared.has(role, each) for each in fixed):
            few = {1, 2} if declared.has(role, Trait.SUBSCRIBER) else {1}
            yield f"roles.{role}", sorted({*few, count, count + 1})
