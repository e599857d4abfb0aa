"""The plan of a run, computed from an experiment and its topology.

Pure, except that it reads the files of workload events and link traces. It starts nothing.

Region number i has the network 10.i.0.0/16, with its gateway at .0.1 and its hosts after it. WAN link number
k has the network 10.255.x.y/30 at offset 4k; the gateway of its first region has the lower address. Regions,
links, hosts and processes keep the order of the files, and roles the order of the system. A region that sends
or receives background traffic has one more host for it, after the others. That host is not captured.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from experiments.checks import problems
from experiments.declared import Trait, programs_of
from experiments.faults.fault import ExperimentFault
from experiments.model import Experiment
from experiments.parameters import roles_of
from experiments.planned.changes import LinkChange, LinkDirectionName, ProcessChange
from experiments.planned.plan import (
    GATEWAY_ROLE,
    TRAFFIC_ROLE,
    BurstPlan,
    CapturePlan,
    HostPlan,
    LinkPlan,
    Plan,
    ProcessPlan,
    RegionPlan,
    RoutingPlan,
    StreamPlan,
    TrafficPlan,
)
from experiments.roles import counts_in
from experiments.workloads.workload import WorkloadStream, named_streams
from testbed.faults.timeline import fault_plans, link_changes, process_changes, trigger_conflict
from testbed.programs import check_programs
from topologies.document import dotted, shown_path
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters, queue_limit_packets
from topologies.link_trace import LinkTrace
from topologies.model import Topology
from topologies.quantities import DURATION
from topologies.routing import SECOND_US, STATIC
from topologies.trace_files import read_delay_trace, read_rate_trace

WAN_NETWORK = IPv4Address("10.255.0.0")
NO_PROCESS = frozenset({GATEWAY_ROLE, TRAFFIC_ROLE})
TRAFFIC_PORT = 5201
"""iperf3's default port, used by the first burst; each further burst of a run has the next port."""


def make_plan(experiment: Experiment, topology: Topology, *, seed: int | None, links_kind: str) -> Plan:
    """Return the plan of one run.

    seed: the seed of the run's randomness, in place of the experiment's. links_kind: auto, netem or relay.
    Raises InputError if the experiment names regions, links or processes that the topology does not have.
    """
    run_seed = experiment.seed if seed is None else seed
    experiment = experiment.drawn(run_seed)
    for path, problem in problems(experiment, topology):
        raise InputError(experiment.name, None, dotted(path), problem)
    faults = experiment.all_faults(topology, run_seed)
    if found := trigger_conflict(faults, topology):
        raise InputError(experiment.name, None, "faults", found)
    churn = experiment.churn(topology, run_seed)
    hosts = tuple(_hosts(experiment, topology))
    if twice := [name for name, count in Counter(host.name for host in hosts).items() if count > 1]:
        problem = f"two hosts would both be called {twice[0]}: rename a region"
        raise InputError(topology.name, None, "regions", problem)
    with _naming_images(experiment):
        programs = programs_of(experiment.system, experiment.images)
    links = (*_wan_links(topology), *_lan_links(topology, hosts))
    processes = tuple(_processes(hosts, run_seed))
    streams = tuple(_streams(experiment.workload.streams_in(tuple(topology.regions))))
    plan = Plan(
        experiment=experiment.name,
        system=experiment.declared().name,
        parameters=experiment.all_parameters(),
        workload=experiment.workload.as_plan(),
        seed=run_seed,
        duration_us=experiment.duration_us,
        drain_us=experiment.drain_us,
        links_kind=links_kind,
        congestion_control=experiment.congestion_control,
        snaplen_bytes=experiment.captures.snaplen_bytes,
        regions=tuple(_regions(topology)),
        hosts=hosts,
        links=links,
        processes=tuple(_with_workload(processes, experiment, streams, run_seed)),
        captures=tuple(_captures(experiment, hosts, links)),
        faults=tuple(fault_plans(faults, topology, experiment.duration_us)),
        changes=all_changes(faults, topology, experiment.duration_us, churn.changes, links=links),
        churn=churn.groups,
        streams=streams,
        declared=experiment.declared(),
        programs=programs,
        traffic=tuple(_traffic(experiment)),
        routing=_routing(topology),
    )
    with _naming_images(experiment):
        check_programs(plan)
    return plan


@contextmanager
def _naming_images(experiment: Experiment) -> Iterator[None]:
    """Let errors of an image name the experiment's `images`, if it is there, and not the system's file."""
    try:
        yield
    except InputError as error:
        _, role, *rest = (*error.field.split("."), "")
        if role in experiment.images and rest[:1] in (["image"], ["run"], ["user"]):
            raise InputError(experiment.name, None, f"images.{role}", error.problem) from None
        raise


def with_faults(plan: Plan, faults: Sequence[ExperimentFault], topology: Topology, duration_us: int) -> Plan:
    """Return the plan with its faults replaced; nothing changes after `duration_us`."""
    return replace(
        plan,
        faults=tuple(fault_plans(faults, topology, duration_us)),
        changes=all_changes(faults, topology, duration_us, links=plan.links),
    )


def region_network(number: int) -> IPv4Network:
    """Return the network of the region at this index in the topology, from 0."""
    return IPv4Network((f"10.{number}.0.0", 16))


def process_seed(run_seed: int, process: str) -> int:
    """Return a process's own seed, which does not depend on the other processes."""
    digest = hashlib.blake2b(f"{run_seed} {process}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # fits a signed 64-bit number


def _regions(topology: Topology) -> Iterator[RegionPlan]:
    for number, name in enumerate(topology.regions):
        yield RegionPlan(name, str(region_network(number)), f"{name}-gw")


def _routing(topology: Topology) -> RoutingPlan | None:
    given = topology.routing
    if given is None or given.protocol == STATIC:
        return None
    hello_us, dead_us = given.timers_us
    bfd = () if given.bfd is None else (given.bfd.interval_us // 1000, given.bfd.multiplier)
    return RoutingPlan(given.protocol, hello_us // SECOND_US, dead_us // SECOND_US, *bfd)


def _streams(asked: Sequence[WorkloadStream]) -> Iterator[StreamPlan]:
    """Yield the streams by number, each with a name."""
    for number, (name, stream) in enumerate(named_streams(asked)):
        publishers = (stream.region,) if stream.publishers is None else stream.publishers
        yield StreamPlan(number, stream.region, name, publishers)


def _hosts(experiment: Experiment, topology: Topology) -> Iterator[HostPlan]:
    """Yield each region's gateway, then its hosts."""
    for number, region in enumerate(topology.regions):
        network = region_network(number)
        yield HostPlan(f"{region}-gw", region, GATEWAY_ROLE, 0, str(network[1]), "")
        counts = counts_in(experiment.roles, region)
        places = ((role, i) for role in roles_of(experiment.system) for i in range(counts.get(role, 0)))
        for offset, (role, index) in enumerate(places):
            name = f"{region}-{role}-{index}"
            yield HostPlan(name, region, role, index, str(network[2 + offset]), f"lan-{name}")
        if any(region in {each.origin, each.target} for each in experiment.traffic):
            name, address = _traffic_host(region), str(network[2 + sum(counts.values())])
            yield HostPlan(name, region, TRAFFIC_ROLE, 0, address, f"lan-{name}")


def _traffic_host(region: str) -> str:
    return f"{region}-traffic"  # unique: the hosts of processes end in a number


def _traffic(experiment: Experiment) -> Iterator[TrafficPlan]:
    port = TRAFFIC_PORT
    for entry in experiment.traffic:
        bursts = list(entry.bursts(experiment.duration_us))
        yield TrafficPlan(
            name=entry.name,
            host=_traffic_host(entry.origin),
            target=_traffic_host(entry.target),
            protocol="udp" if entry.tcp is None else "tcp",
            flows=entry.tcp or 1,
            rate_bits_per_s=entry.asked_bits_per_s,
            at_us=entry.at_us,
            until_us=entry.end_us(experiment.duration_us),
            bursts=tuple(BurstPlan(each.at_us, each.length_s, port + n) for n, each in enumerate(bursts)),
        )
        port += len(bursts)


def _wan_links(topology: Topology) -> Iterator[LinkPlan]:
    for number, link in enumerate(topology.links):
        network = IPv4Network((WAN_NETWORK + 4 * number, 30))
        forward_trace = _trace(link.name, link.forward_parameters, link.forward_files)
        backward_trace = _trace(link.name, link.backward_parameters, link.backward_files)
        yield LinkPlan(
            name=link.name,
            kind="wan",
            a=link.between[0],
            b=link.between[1],
            forward=_with_trace(link.forward_parameters, forward_trace),
            backward=_with_trace(link.backward_parameters, backward_trace),
            a_address=str(network[1]),
            b_address=str(network[2]),
            subnet=str(network),
            weight=link.weight,
            forward_trace=forward_trace,
            backward_trace=backward_trace,
        )


def _trace(link: str, parameters: LinkParameters, files: Mapping[str, str]) -> LinkTrace | None:
    """Read the files that a link direction follows. Raises InputError."""
    rate, delay = files.get("rate"), files.get("delay")
    trace = LinkTrace(
        None if rate is None else read_rate_trace(Path(rate)),
        None if delay is None else read_delay_trace(Path(delay)),
    )
    if trace.delay is not None and min(trace.delay.values) < parameters.jitter_us:
        least, jitter = (DURATION.format(us) for us in (min(trace.delay.values), parameters.jitter_us))
        problem = f"falls to {least}, less than the jitter of {jitter} of the link {link}"
        raise InputError(shown_path(Path(str(delay))), None, "", problem)
    return trace if files else None


def _with_trace(parameters: LinkParameters, trace: LinkTrace | None) -> LinkParameters:
    """Return the parameters, completed from the trace.

    Until time 0 the rate is the trace's mean rate. The queue is as long as for a link with that rate and the
    trace's longest delay.
    """
    if trace is None or trace.rate is None or not parameters.rate_traced:
        return parameters
    delays_us = trace.delay.values if trace.delay and parameters.delay_traced else (parameters.delay_us,)
    mean = max(1, round(trace.rate.mean))
    typical = replace(parameters, rate_bits_per_s=mean, delay_us=max(delays_us))
    rate_bits_per_s = parameters.rate_bits_per_s or mean
    return replace(parameters, rate_bits_per_s=rate_bits_per_s, queue_packets=queue_limit_packets(typical))


def _lan_links(topology: Topology, hosts: tuple[HostPlan, ...]) -> Iterator[LinkPlan]:
    parameters_of = {name: region.lan.parameters() for name, region in topology.regions.items()}
    for host in hosts:
        if host.lan_link:
            parameters = parameters_of[host.region]
            yield LinkPlan(host.lan_link, "lan", host.name, host.region, parameters, parameters)


def _processes(hosts: tuple[HostPlan, ...], run_seed: int) -> Iterator[ProcessPlan]:
    for host in hosts:
        if host.role not in NO_PROCESS:
            name = f"{host.region}/{host.role}-{host.index}"
            yield ProcessPlan(
                name, host.name, host.region, host.role, host.index, process_seed(run_seed, name)
            )


def _with_workload(
    processes: Sequence[ProcessPlan], experiment: Experiment, streams: Sequence[StreamPlan], run_seed: int
) -> Iterator[ProcessPlan]:
    """Yield the processes, subscribers with their subscriptions, publishers with the rows of their events."""
    declared, workload = experiment.declared(), experiment.workload
    subscribers = [each.name for each in processes if declared.has(each.role, Trait.SUBSCRIBER)]
    asked = workload.subscriptions(subscribers, experiment.duration_us, run_seed)
    rows = workload.rows(len(streams), experiment.duration_us)
    for process in processes:
        publishes = declared.has(process.role, Trait.PUBLISHER) and rows
        mine = [
            rows[stream.number]
            for stream in (streams if publishes else ())
            if not {process.region, process.name}.isdisjoint(stream.publishers)
        ]
        yield replace(process, subscriptions=asked.get(process.name, ()), rows=mine[0] if mine else "")


def _captures(
    experiment: Experiment, hosts: tuple[HostPlan, ...], links: tuple[LinkPlan, ...]
) -> Iterator[CapturePlan]:
    if "hosts" in experiment.captures.where:
        for host in hosts:
            if host.role not in NO_PROCESS:
                yield CapturePlan(f"{host.name}-eth0.pcap", host=host.name)
    if "gateways" in experiment.captures.where:
        for link in links:
            if link.kind == "wan":
                for side in (link.a, link.b):
                    yield CapturePlan(f"{link.name}@{side}.pcap", link=link.name, side=side)


def all_changes(
    faults: Sequence[ExperimentFault],
    topology: Topology,
    duration_us: int,
    churn: Sequence[ProcessChange] = (),
    *,
    links: Sequence[LinkPlan],
) -> tuple[LinkChange | ProcessChange, ...]:
    """Return all changes by time; at the same instant, links change before processes. links: the plan's."""
    traces = {
        (link.name, direction): link.trace(direction) for link in links for direction in LinkDirectionName
    }
    changes: list[LinkChange | ProcessChange] = [
        *(
            replace(
                change,
                parameters=_with_trace(change.parameters, traces.get((change.link, change.direction))),
            )
            for change in link_changes(faults, topology, duration_us)
        ),
        *process_changes(faults, duration_us),
        *churn,
    ]
    return tuple(sorted(changes, key=lambda change: change.at_us))
