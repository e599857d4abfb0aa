"""Checks an experiment against its topology: every region, link and process that it names must exist."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

from experiments.churn import Arrivals, Departures
from experiments.declared import Trait, declared_by, programs_of
from experiments.faults.environment import DiskFault, EnvironmentFault, Fill, PacketFault, Separate
from experiments.faults.fault import FaultTrigger, TriggeredFault, region_problems
from experiments.faults.links import Restore, SetLink
from experiments.faults.processes import Continue, JoinFault, Kill, LeaveFault, ProcessFault, Restart, Stop
from experiments.model import Experiment
from experiments.parameters import event_limit_bytes, is_durable, roles_problem, waits
from experiments.planned.churn_schedule import candidates
from experiments.records.summary import STREAMS_MAX
from experiments.roles import COUNT_MAX, DEFAULT, counts_in
from experiments.traffic import RATE_BITS_PER_S_MAX
from experiments.workloads.stream import StreamWorkload
from experiments.workloads.topics import TopicsWorkload
from experiments.workloads.workload import named_streams
from node.systems import codecs
from topologies.document import FieldPath
from topologies.model import Topology
from topologies.quantities import DURATION, RATE, yaml_name
from topologies.round_trips import carriers, greatest_detour, greatest_direct, hops
from topologies.routes import reached_from
from topologies.strict import suggestion

PROCESSES_MAX = 200_000
"""Limit in virtual time. A machine can start fewer real processes; the resource check reports that."""

NAMES_COMPARED = 1000
"""Number of process names compared to find the nearest one."""

Problem = tuple[FieldPath, str]

_RUNNING = Kill | LeaveFault | Stop | Continue
"""Faults on a process that runs."""


def problems(experiment: Experiment, topology: Topology) -> Iterator[Problem]:
    """Yield each problem with its path in the experiment, in the order of the file."""
    if (apart := _apart(topology)) is not None:
        yield ("topology",), f"no path leads from {apart[0]} to {apart[1]}"
        return  # without a path, processes cannot reach each other
    yield from _role_problems(experiment, topology)
    processes = process_names(experiment, topology)
    workload, regions = experiment.workload, len(topology.regions)
    if isinstance(workload, TopicsWorkload) and workload.publishers > regions:
        yield ("workload", "publishers"), f"is more than there are regions, {regions}"
    for where, message in workload.problems(regions, experiment.duration_us):
        yield ("workload", *where), message
    limit_bytes = event_limit_bytes(experiment.system, experiment.all_parameters())
    if limit_bytes is not None and workload.event_size_bytes > limit_bytes:
        yield (
            ("workload", "event_size"),
            f"is more than an event of {experiment.system} may have: {limit_bytes} B",
        )
    yield from _stream_problems(experiment, topology, processes)
    yield from _expectation_problems(experiment, topology)
    if len(processes) > PROCESSES_MAX:
        yield ("roles",), f"makes {len(processes)} processes: at most {PROCESSES_MAX} are possible"
    most, region = max((sum(counts_in(experiment.roles, name).values()), name) for name in topology.regions)
    if most > COUNT_MAX:
        yield ("roles",), f"makes {most} processes in {region}: at most {COUNT_MAX} are possible in a region"
    if experiment.nemesis and (found := experiment.nemesis.topology_problem(topology, experiment.faults)):
        yield ("nemesis", "stays"), found
    yield from _churn_problems(experiment, topology)
    yield from _wait_problems(experiment, topology)
    yield from _traffic_problems(experiment, topology)
    known = dict.fromkeys(processes)
    for number, fault in enumerate(experiment.faults):
        path: FieldPath = ("faults", number, fault.kind)
        if isinstance(fault, ProcessFault):
            if found := _unknown(fault.process, known):
                yield path, found
            else:
                yield from _order_problems(experiment, number, fault)
                if isinstance(fault, DiskFault) and (found := _disk_problem(experiment, fault)):
                    yield path, found
            if isinstance(fault, PacketFault):
                yield from _others_problems(number, fault, known)
        else:
            yield from ((path, text) for text in fault.problems(topology))
            of = fault.of if isinstance(fault, SetLink) else None
            if of is not None and (found := _unknown(of, known)):
                yield ("faults", number, "of"), found
            if isinstance(fault, Restore) and isinstance(fault.what, str):
                yield from ((path, text) for text in _restore_problems(fault.what, experiment, topology))
        if isinstance(fault, TriggeredFault) and fault.when is not None:
            yield from _trigger_problems(experiment, number, fault.when, known)


def _unknown(process: str, known: Mapping[str, None]) -> str | None:
    """Return the problem that no process has this name, with the nearest one; None if one has."""
    if process in known:
        return None
    return f"there is no process {process}{suggestion(process, list(islice(known, NAMES_COMPARED)))}"


def _restore_problems(name: str, experiment: Experiment, topology: Topology) -> Iterator[str]:
    """Check that a restore names either a fault that can be ended or a link."""
    faults = [fault.name for fault in experiment.faults if hasattr(fault, "for_us")]
    is_link = topology.link(name) is not None
    if name in faults and is_link:
        yield f"{name} is the name of a fault and of a link: rename the fault"
    elif name not in faults and not is_link:
        yield f"no fault that a restore ends, and no link, is named {name}{suggestion(name, faults)}"


def _churn_problems(experiment: Experiment, topology: Topology) -> Iterator[Problem]:
    """Check that regions exist, and that `roles` gives enough processes to arrive or leave permanently."""
    asked: Counter[str] = Counter()
    for field, groups in (("arrivals", experiment.arrivals), ("departures", experiment.departures)):
        for number, group in enumerate(groups):
            for place, region in enumerate(group.regions):
                path: FieldPath = (field, number, "regions", place)
                yield from ((path, message) for message in region_problems(region, topology))
            there = len(candidates(group, experiment.roles, tuple(topology.regions)))
            where = " ".join(group.regions) or "all regions"
            path = (field, number, "role" if group.count is None else "count")
            if not there:
                yield path, f"`roles` gives no {group.role} in {where}"
            elif isinstance(group, Arrivals):
                asked[group.role] += group.count or 0
                most = sum(counts_in(experiment.roles, each).get(group.role, 0) for each in topology.regions)
                if (group.count or 0) > there or asked[group.role] > most:
                    least = min(there, most)
                    yield path, f"asks for more {group.role} than `roles` gives in {where}: {least}"
            elif isinstance(group, Departures) and (group.count or 0) > there and not group.may_go_again:
                yield path, f"is more than `roles` gives of {group.role} in {where}: {there}"


def process_names(experiment: Experiment, topology: Topology) -> list[str]:
    """Return the name of every process, such as `r2/proxy-0`, region by region."""
    return [
        f"{region}/{role}-{index}"
        for region in topology.regions
        for role, count in counts_in(experiment.roles, region).items()
        for index in range(count)
    ]


def role_of(process: str) -> str:
    """Return the role of a process: `proxy` for `r2/proxy-0`."""
    return process.partition("/")[2].rpartition("-")[0]


def _apart(topology: Topology) -> tuple[str, str] | None:
    """Return two regions that no path joins, or None."""
    first, *others = topology.regions
    reached = reached_from(first, (link.between for link in topology.links))
    return next(((first, other) for other in others if other not in reached), None)


def _role_problems(experiment: Experiment, topology: Topology) -> Iterator[Problem]:
    for region in experiment.roles:
        if region != DEFAULT:
            yield from ((("roles", region), message) for message in region_problems(region, topology))
    for region in topology.regions:
        problem = roles_problem(experiment.system, counts_in(experiment.roles, region))
        if problem is not None:
            named = region if region in experiment.roles else DEFAULT
            yield ("roles",) if list(experiment.roles) == [DEFAULT] else ("roles", named), problem
            return


def _wait_problems(experiment: Experiment, topology: Topology) -> Iterator[Problem]:
    """Check that the nodes' timeouts are longer than the round trips they wait for."""
    for wait in waits(experiment.system, experiment.all_parameters()):
        trips = [greatest_direct(topology), greatest_detour(topology) if wait.is_relayed else None]
        trip = max((each for each in trips if each is not None), key=lambda each: each.us)
        if wait.us > trip.us:
            continue
        times = f" in {wait.attempts} attempts" if wait.attempts > 1 else ""
        least_us = math.floor(trip.us / wait.attempts / 1_000 + 1) * 1_000
        name = yaml_name(wait.parameter)
        unless_given = "" if name in experiment.parameters else " unless it is given"
        yield (
            ("parameters", name),
            f"waits {DURATION.format(wait.us)}{times}{unless_given}, but the round trip {trip} of "
            f"{topology.name} takes {DURATION.format(trip.us)}: "
            f"--set parameters.{name}={DURATION.format(least_us)} or more",
        )


def _traffic_problems(experiment: Experiment, topology: Topology) -> Iterator[Problem]:
    """Check that regions exist and are connected, and that unlimited flows cross a link that limits them."""
    for number, entry in enumerate(experiment.traffic):
        for field, region in (("from", entry.origin), ("to", entry.target)):
            yield from (
                (("traffic", number, field), message) for message in region_problems(region, topology)
            )
        if not {entry.origin, entry.target} <= topology.regions.keys():
            continue
        rates = _rates_between(entry.origin, entry.target, topology)
        if not rates:
            yield ("traffic", number, "to"), f"no path leads from {entry.origin} to {entry.target}"
        elif entry.asked_bits_per_s is None and min(rates) > RATE_BITS_PER_S_MAX:
            yield (
                ("traffic", number, "tcp"),
                f"would take all of this machine: no link from {entry.origin} to {entry.target} has"
                f" {RATE.format(RATE_BITS_PER_S_MAX)} or less; give it a rate",
            )


def _rates_between(origin: str, target: str, topology: Topology) -> list[float]:
    """Return the rates of the links on the route from one region to another; [] if there is no route."""
    found, links = [], carriers(topology)
    for hop in hops(topology).get((origin, target), ()):
        link = links[hop]
        forward = link.between == hop
        parameters = link.forward_parameters if forward else link.backward_parameters
        found.append(float(parameters.rate_bits_per_s or math.inf))
    return found


def _stream_problems(experiment: Experiment, topology: Topology, processes: list[str]) -> Iterator[Problem]:
    """Check that the regions and publishers of streams exist and that stream names are unique."""
    streams = experiment.workload.streams if isinstance(experiment.workload, StreamWorkload) else 1
    if isinstance(streams, int):
        return
    publishing = declared_by(experiment.system).having(Trait.PUBLISHER)
    role = " or ".join(publishing) or "publisher"
    known = [name for name in processes if role_of(name) in publishing]
    names: set[str] = set()
    for number, stream in enumerate(streams):
        path: FieldPath = ("workload", "streams", number)
        yield from (((*path, "region"), text) for text in region_problems(stream.region, topology))
        for at, publisher in enumerate(stream.publishers or ()):
            if publisher not in topology.regions and publisher not in known:
                hint = suggestion(publisher, [*topology.regions, *known[:1000]])
                yield (*path, "publishers", at), f"there is no region or {role} {publisher}{hint}"
        if stream.name in names or stream.name in topology.regions:
            yield (*path, "name"), f"the name {stream.name} is taken"
        names |= {stream.name} if stream.name else set()


def _expectation_problems(experiment: Experiment, topology: Topology) -> Iterator[Problem]:
    """Check that streams named in expectations exist and have figures of their own."""
    paths = [expectation.path.split(".") for expectation in experiment.expect]
    asked = {number: ".".join(path[1:-1]) for number, path in enumerate(paths) if path[0] == "streams"}
    if not asked:
        return
    names = [name for name, _ in named_streams(experiment.workload.streams_in(tuple(topology.regions)))]
    for number, name in asked.items():
        if len(names) > STREAMS_MAX:
            message = f"there are {len(names)} streams: at most {STREAMS_MAX} have figures of their own"
            yield ("expect", number), message
        elif name not in names:
            yield ("expect", number), f"no stream is named {name}{suggestion(name, names)}"


def _others_problems(number: int, fault: PacketFault, known: Mapping[str, None]) -> Iterator[Problem]:
    """Check that the other processes exist, differ from the process and, to separate, are in its region."""
    region = fault.process.partition("/")[0]
    for index, other in enumerate(fault.others):
        path: FieldPath = ("faults", number, "from", index)
        if found := _unknown(other, known):
            yield path, found
        elif other == fault.process:
            yield path, "is the process itself"
        elif isinstance(fault, Separate) and other.partition("/")[0] != region:
            yield path, f"is not in {region}: cut links between regions instead"


def _disk_problem(experiment: Experiment, fault: DiskFault) -> str | None:
    """Return why a disk fault is impossible: the node stores nothing, or has no file system of its own."""
    programs, role = programs_of(experiment.system), role_of(fault.process)
    if programs is None:
        if not is_durable(experiment.system, experiment.all_parameters()):
            return f"processes of {experiment.system} store nothing on disk with these parameters"
        keeping = experiment.declared().having(Trait.REPLICATED, Trait.COORDINATOR)
        return None if role in keeping else f"a {role} stores nothing on disk"
    if isinstance(fault, Fill) and programs.roles[role].limits.storage_bytes is None:
        return (
            f"{role} has no file system of its own: give it `limits: {{storage: 100MB}}` in {programs.file}"
        )
    return None


def _trigger_problems(
    experiment: Experiment, number: int, when: FaultTrigger, known: Mapping[str, None]
) -> Iterator[Problem]:
    """Check that the process exists and that its system has such a message."""
    path: FieldPath = ("faults", number, "when")
    if found := _unknown(when.process, known):
        yield (*path, "process"), found
    if programs_of(experiment.system) is not None:
        yield path, f"the messages of {experiment.system} are not known: give `at`"
        return
    names = list(codecs()[experiment.system].by_name)
    if when.sends not in names:
        yield (*path, "sends"), f"there is no message {when.sends}{suggestion(when.sends, names)}"


def _order_problems(experiment: Experiment, number: int, fault: ProcessFault) -> Iterator[Problem]:
    """Check the order of faults on a process.

    A restart or replacement needs an earlier kill or leave, or a fault that may end a program (a full disk,
    little memory); a continue needs a stop; a join must come first. After a kill or leave, a process must be
    restarted before it is ended, stopped or continued again. Faults with a trigger have no known order.
    """
    if isinstance(fault, EnvironmentFault):
        return
    before = [
        other
        for index, other in enumerate(experiment.faults)
        if isinstance(other, ProcessFault)
        and other.process == fault.process
        and (other.at_us, index) < (fault.at_us, number)
    ]
    ordered = [other for other in before if not isinstance(other, EnvironmentFault)]
    earlier = [other.kind for other in ordered]
    last = next((each for each in reversed(ordered) if isinstance(each, Kill | LeaveFault | Restart)), None)
    has_trigger = any(isinstance(each, TriggeredFault) and each.when for each in (*ordered, fault))
    ends_itself = programs_of(experiment.system) is not None  # programs may end without a fault
    path: FieldPath = ("faults", number, fault.kind)
    is_restart = isinstance(fault, Restart)
    may_have_ended = is_restart and any(each.may_end_process for each in before)
    if fault.needs and not may_have_ended and not any(kind in fault.needs for kind in earlier):
        yield path, f"no {' or '.join(fault.needs)} of {fault.process} comes before it"
    if isinstance(fault, JoinFault) and earlier:
        yield path, f"its {earlier[0]} comes before it, but {fault.process} does not run until it joins"
    elif isinstance(last, Kill | LeaveFault) and isinstance(fault, _RUNNING) and not has_trigger:
        yield path, f"its {last.kind} comes before it: restart {fault.process} in between"
    elif is_restart and isinstance(last, Restart) and not (ends_itself or may_have_ended or has_trigger):
        yield path, f"{fault.process} has been running since its {last.kind}: kill it in between"
