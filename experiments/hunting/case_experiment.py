"""A case as an experiment: its settings, and its disturbances as faults in the form of a file."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from pydantic import ValidationError

from experiments.campaigns.sweep import OF_MANY_RUNS
from experiments.expectations import Expectation
from experiments.hunting.case import (
    AT_ONCE,
    FAULTS,
    FOR_GOOD,
    ON_LINKS,
    ON_REGIONS,
    HuntCase,
    HuntDisturbance,
)
from experiments.model import Experiment
from experiments.nemesis import ms_text
from experiments.overrides import with_value
from experiments.parameters import is_durable
from experiments.planned.nemesis_schedule import regions_of
from experiments.records.summary import STREAMS_MAX
from experiments.roles import as_in_file
from experiments.workloads.stream import StreamWorkload
from experiments.workloads.workload import named_streams
from topologies.document import Document
from topologies.errors import InputError
from topologies.model import Topology
from topologies.quantities import DURATION

Given = dict[str, Any]  # a fault in the form of a file
HUNTED = "hunt"
LOOKED_AT = ("events.", "subscriptions.", "streams.")
"""Prefixes of expectations that a hunt checks."""
LOST, TWICE = "lost", "duplicated"


def hunt_base(experiment: Experiment) -> Experiment:
    """Return the base of all cases: the experiment without sweeps and without faults of its own."""
    data = experiment.to_json()
    for field in (*OF_MANY_RUNS, "nemesis", "faults", "arrivals", "departures"):
        data.pop(field, None)
    data["expect"] = [each for each in data.get("expect", ()) if str(each).startswith(LOOKED_AT)]
    return Experiment.model_validate(_with_short_roles(data))


def experiment_of(base: Experiment, case: HuntCase, topology: Topology) -> Experiment:
    """Return the experiment of a case. Raises InputError if its settings are impossible."""
    experiment = with_settings(base, case.settings)
    of_region = regions_of(experiment.roles, topology, ())
    faults = [
        fault for each in named_disturbances(case.disturbances) for fault in faults_of(*each, of_region)
    ]
    faults.sort(key=lambda fault: DURATION.parse(fault["at"]))
    data = _with_short_roles(experiment.to_json())
    if forgetful := forgetting_regions(experiment, case):
        spared = (LOST, TWICE) if _is_outlived(experiment, topology) else (LOST,)
        theirs, others = _streams(experiment, topology, forgetful)
        excused = {f"{where}.{name}" for where in ("events", *theirs) for name in spared}
        expected = [
            each for each in data.get("expect", ()) if Expectation.parse(str(each)).path not in excused
        ]
        kept = [f"{where}.{LOST} == 0" for where in others]
        data["expect"] = [*expected, *(f"events.{name} >= 0" for name in spared), *kept]
    return _validated({**data, "seed": case.seed, "faults": faults})


def _link(target: tuple[str, ...]) -> list[str] | str:
    """Return a link as faults refer to it: its two regions, or its name."""
    return list(target) if len(target) == 2 else target[2]


def forgetting_regions(experiment: Experiment, case: HuntCase) -> frozenset[str]:
    """Return the regions that lose data that only they had: losses in their streams are not a breach.

    experiment: with the case's settings.
    """
    durable = is_durable(experiment.system, experiment.all_parameters())
    kinds = {"power-and-disks"} if durable else {"power", "power-and-disks"}
    return frozenset(each.target[0] for each in case.disturbances if each.kind in kinds)


def _streams(experiment: Experiment, topology: Topology, regions: Set[str]) -> tuple[list[str], list[str]]:
    """Return the paths of these regions' streams in summary.json, and those of the others."""
    if not isinstance(experiment.workload, StreamWorkload):
        return [], []
    named = list(named_streams(experiment.workload.streams_in(tuple(topology.regions))))
    if len(named) > STREAMS_MAX:
        return [], []
    theirs, others = (
        [f"streams.{name}" for name, each in named if (each.region in regions) is is_theirs]
        for is_theirs in (True, False)
    )
    return theirs, others


def _is_outlived(experiment: Experiment, topology: Topology) -> bool:
    """Return whether publishers in other regions may outlive a region that loses all its data.

    They publish unacknowledged events again, and the region no longer knows that it delivered them.
    """
    if not isinstance(experiment.workload, StreamWorkload):
        return False
    streams = experiment.workload.streams_in(tuple(topology.regions))
    return any(
        publisher.partition("/")[0] != each.region for each in streams for publisher in each.publishers or ()
    )


def with_settings(base: Experiment, settings: Mapping[str, Any]) -> Experiment:
    """Set these values by dotted path. Raises InputError if they are impossible."""
    if not settings:
        return base
    document = Document(HUNTED, _with_short_roles(base.to_json()), {})
    for path, value in settings.items():
        document = with_value(document, path, value, HUNTED)
    return _validated(document.data)


def named_disturbances(disturbances: tuple[HuntDisturbance, ...]) -> Iterator[tuple[str, HuntDisturbance]]:
    """Yield each disturbance with the name of its faults."""
    for number, each in enumerate(disturbances, 1):
        yield f"h{number:02}-{each.kind}", each


def faults_of(name: str, each: HuntDisturbance, of_region: Mapping[str, Sequence[str]]) -> Iterator[Given]:
    """Yield the faults of a disturbance in order of time. of_region: the processes of each region."""
    over: Given = {"name": name, **_begin(each)}
    if each.after is None and each.kind not in AT_ONCE:
        over["for"] = ms_text(each.for_us)
    elif each.after is not None and each.kind in {*ON_LINKS, "separate"} - {*FOR_GOOD}:
        yield {"name": f"{name}-end", "at": ms_text(each.end_us), "restore": name}
    match each.kind:
        case "cut" | "sever":
            yield {**over, "cut": _link(each.target), "direction": each.direction}
        case "isolate":
            yield {**over, "isolate": each.target[0], "direction": each.direction}
        case "partition":
            yield {**over, "partition": [list(each.target), list(each.others)], "direction": each.direction}
        case "flap":
            down_or_up = ms_text(each.amount)
            yield {**over, "flap": _link(each.target), "down": down_or_up, "up": down_or_up}
        case "delay" | "loss" | "duplicate" | "corrupt":
            value = ms_text(each.amount) if each.kind == "delay" else f"{each.amount / 10:g}%"
            of: Given = {"of": each.others[0]} if each.others else {}
            of |= {"port": each.port} if each.port else {}
            yield {**over, "set": _link(each.target), "direction": each.direction, **of, each.kind: value}
        case "separate":
            yield {**over, "separate": each.target[0], "from": list(each.others), "direction": each.direction}
        case "clock":
            offset = f"{'-' if each.direction == 'backward' else ''}{ms_text(each.amount)}"
            for process, one in _each(each, name):
                yield {**over, "name": one, "clock": process, "offset": offset}
        case "reset" | "join" | "depart" | "die" | "fill" | "slow-disk" | "throttle":
            how = {"slow-disk": {"sync": ms_text(each.amount)}, "throttle": {"cpu": f"{each.amount / 10:g}%"}}
            for process, one in _each(each, name):
                kind = FAULTS.get(each.kind, each.kind)
                yield {**over, "name": one, kind: process, **how.get(each.kind, {})}
        case "memory":
            over["for"] = f"{each.for_us - 1}us"  # the limit ends before the restart
            for process, one in _each(each, name):
                yield {**over, "name": one, "throttle": process, "memory": f"{each.amount}B"}
                yield {"name": f"{one}-kill", "at": ms_text(each.end_us), "kill": process}
                yield {"name": f"{one}-end", "at": ms_text(each.end_us), "restart": process}
        case _:
            yield from _of_processes(each, name, of_region)


def _of_processes(
    each: HuntDisturbance, name: str, of_region: Mapping[str, Sequence[str]]
) -> Iterator[Given]:
    first, then = {
        "crash": ("kill", "restart"),
        "pause": ("stop", "continue"),
        "leave": ("leave", "restart"),
        "power": ("kill", "restart"),
        "power-and-disks": ("kill", "replace"),
    }[each.kind]
    processes = _each(each, name)
    if each.kind in ON_REGIONS:
        (region,) = each.target
        if len(of_region) > 1:  # drop packets silently, so that no connection is reset
            yield {"name": name, "at": ms_text(each.at_us), "for": ms_text(each.for_us), "isolate": region}
        processes = ((process, f"{name}-{process.replace('/', '-')}") for process in of_region[region])
    for process, one in processes:
        yield {"name": one, **_begin(each), first: process}
        yield {"name": f"{one}-end", "at": ms_text(each.end_us), then: process}


def _begin(each: HuntDisturbance) -> Given:
    """Return the fields that start a fault: its time, or its trigger."""
    after = each.after
    if after is None:
        return {"at": ms_text(each.at_us)}
    when = {"process": after.process, "sends": after.sends, "times": after.times}
    return {"at": ms_text(after.since_us), "when": when}


def _each(each: HuntDisturbance, name: str) -> Iterator[tuple[str, str]]:
    """Yield its processes, each with the name of its fault."""
    for process in each.target:
        yield process, name if len(each.target) == 1 else f"{name}-{process.replace('/', '-')}"


def _with_short_roles(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "roles": as_in_file(data["roles"])}


def _validated(data: Any) -> Experiment:
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        raise InputError(HUNTED, None, "", error.errors()[0]["msg"]) from None
