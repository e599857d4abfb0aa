"""The settings that a hunt draws, besides those that the experiment's nemesis varies, and their values.
Parameters of programs are drawn only if the nemesis says so: their meaning is unknown.

Values are: times and counts of the system's parameters, halved and doubled, so that every promised time still
fits into a run; limits of memory and large counts also at a small share, which a short run reaches; choices
and switches that the experiment does not set; the duration, the rate, the number of processes, and the
topology. The generator drops values that the experiment or the system refuses.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from experiments.declared import Trait, known_system, programs_of
from experiments.hunting.targets import hunt_targets
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
"""Longer periods seldom or never end within a run."""
LONG_FACTORS = (1 / 16, 1 / 4)
TOPOLOGIES = ("two-regions", "three-regions", "four-regions", "line-3", "ring-4", "star-4")
FACTORS = (0.5, 2)
SMALL_FACTORS = (1 / 1024, 1 / 64)
"""Factors for limits of memory, and for counts from `MANY` on, unless they limit a promise."""
MANY = 64
RATE_FACTORS = (0.02, 0.05, 1)
BATCHING_FACTORS = (8, 4, 2, 1, 0.5)
"""Factors for batching periods; cheap ones first."""
PRESSING = 0.1
"""Factor of the rate if all limits are small together."""
INSTEAD_OF_NONE = (4, 16)
"""Values for counts that are 0."""
RATE_MIN = 5
"""Events per second."""
RATE_FEWEST = 0.5
"""At this rate no later event soon hides the effect of a fault."""
SHORTEST_US = 4_000_000
"""Least time for disturbances."""


def drawn_settings(base: Experiment, nemesis: Nemesis) -> dict[str, list[Any]]:
    """Return the values of each setting to draw, by dotted path; each value is possible by itself."""
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
    """Yield the least possible power of two of each limit and large count, if less than the drawn values."""
    for path, (name, value) in _limits(base).items():
        quantity = quantity_of(name)
        exponents = range(max(0, int(value * min(SMALL_FACTORS)).bit_length() - 1))
        texts = [quantity.format(1 << power) if quantity else 1 << power for power in exponents]
        at = bisect_left(texts, True, key=lambda text: _is_possible(base, {path: text}, nemesis))
        if at < len(texts):
            yield path, [texts[at]]


def _limits(base: Experiment) -> dict[str, tuple[str, Any]]:
    """Return the parameters that may be small: name and value by path."""
    if programs_of(base.system) is not None:
        return {}
    system, current = known_system(base.system), base.all_parameters()
    names = (each.name for each in fields(system.parameters))
    return {
        f"parameters.{yaml_name(name)}": (name, current[name])
        for name in names
        if _may_be_small(name, current[name], system)
    }


def _may_be_small(name: str, value: Any, system: Any) -> bool:
    """Return whether a parameter is a limit of memory or a large count, and does not limit a promise."""
    quantity = quantity_of(name)
    is_large = quantity is SIZE or (quantity is None and type(value) is int and value >= MANY)
    return is_large and name not in (*system.promise_limits, *system.declared.ports)


def shortened_long_periods(base: Experiment, nemesis: Nemesis) -> list[Settings]:
    """Shorten all long periods of the parameters together, so that they end within a run.

    Shortening one alone is often impossible. Periods that limit a promise stay.
    """
    long = {path: us for path, us in _periods(base).items() if us >= LONG_US}
    asked = [
        {path: DURATION.format(round(us * factor)) for path, us in long.items()} for factor in LONG_FACTORS
    ]
    return [settings for settings in asked if settings and _is_possible(base, settings, nemesis)]


def halved_periods(base: Experiment, nemesis: Nemesis) -> list[Settings]:
    """Halve all periods of the parameters, as far as that is possible together.

    Exceptions are batching periods, which determine a run's cost, and periods that limit a promise.
    """
    batching = {f"parameters.{yaml_name(name)}" for name in known_system(base.system).batching}
    together: Settings = {}
    for path, us in _periods(base).items():
        shorter = {path: DURATION.format(round(us / 2))}
        if path not in batching and _is_possible(base, {**together, **shorter}, nemesis):
            together |= shorter
    return [together] if together else []


def _periods(base: Experiment) -> dict[str, int]:
    """Return the times among the parameters by path, without those that limit a promise; {} for programs."""
    if programs_of(base.system) is not None:
        return {}
    system, current = known_system(base.system), base.all_parameters()
    names = (each.name for each in fields(system.parameters))
    return {
        f"parameters.{yaml_name(name)}": current[name]
        for name in names
        if quantity_of(name) is DURATION and current[name] and name not in system.promise_limits
    }


def late_subscriptions(base: Experiment, nemesis: Nemesis) -> list[Settings]:
    """Return settings with subscribers that subscribe or change subscriptions during disturbances."""
    within = DURATION.format(nemesis.start_us + SHORTEST_US)
    later = {"workload.subscriptions.within": within}
    asked = [later, {**later, "workload.subscriptions.change": DURATION.format(SHORTEST_US)}]
    return [settings for settings in asked if _is_possible(base, settings, nemesis)]


def small_limits(base: Experiment, nemesis: Nemesis) -> list[Settings]:
    """Make all limits of memory and large counts small at once, with a rate high enough to reach them.

    The effects of several limits then meet.
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


def server_counts(base: Experiment) -> tuple[str, ...]:
    """Return the paths of settings that count servers."""
    return tuple(f"roles.{role}" for role in known_system(base.system).declared.having(Trait.SERVER))


def cost_settings(base: Experiment) -> tuple[str, ...]:
    """Return the paths of settings that determine a run's cost."""
    system = known_system(base.system)
    roles = system.declared.having(Trait.SUBSCRIBER)
    batching = (f"parameters.{yaml_name(name)}" for name in system.batching)
    return ("duration", "workload.rate", *batching, *(f"roles.{role}" for role in roles))


def _is_possible(base: Experiment, settings: Settings, nemesis: Nemesis) -> bool:
    try:
        targets = hunt_targets(base, settings, nemesis)
    except InputError:
        return False
    was, now = base.declared().contract, targets.declared.contract
    return now.delivery in LOSSLESS or was.delivery not in LOSSLESS


def _parameters(base: Experiment) -> Iterator[tuple[str, list[Any]]]:
    """Yield values of the system's own parameters."""
    system = known_system(base.system)
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
    """Yield durations, rates, event sizes, streams, process counts and topologies."""
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
    """Yield several streams per region, some with publishers elsewhere, and rules by which few events
    collect.
    """
    one, other, *_ = [*load_topology(base.topology).regions, ""]
    shared = {"region": one, "name": "shared", "publishers": [one, other]}
    yield "workload.streams", [2, 3, [{"region": one}, shared, {"region": other}]]
    if base.workload.as_plan().get("collect"):
        yield "workload.collect", [{"last": 20}, {"last": 100}, {"older_than": "1s"}]


def _counts(base: Experiment, counts: Mapping[str, int]) -> Iterator[tuple[str, Sequence[int]]]:
    declared = known_system(base.system).declared
    fixed = (Trait.COORDINATOR,) if programs_of(base.system) is None else (Trait.COORDINATOR, Trait.SERVER)
    for role, count in counts.items():
        if count and not any(declared.has(role, each) for each in fixed):
            few = {1, 2} if declared.has(role, Trait.SUBSCRIBER) else {1}
            yield f"roles.{role}", sorted({*few, count, count + 1})
