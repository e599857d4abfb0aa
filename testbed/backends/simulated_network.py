"""Builds the simulated network of a plan for `node.sim`, and applies the plan's changes to it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from random import Random

from experiments.planned.changes import (
    LinkChange,
    LinkState,
    ProcessAction,
    ProcessChange,
)
from experiments.planned.plan import Plan
from experiments.planned.plan_routes import carriers, hops
from experiments.records.rundir import RunDirectory
from node.core.specification import Member, NodeSpec
from node.core.wrong_clock import UPTIME_US
from node.sim.process import Observer
from node.sim.sim_network import Build, Sent, SimulatedNetwork
from node.sim.wires import Hop, LinkLine, SimulatedLan, Wires
from node.systems import build_machine
from testbed.backends.simulated_processes import SimulatedProcesses
from testbed.errors import TestbedError
from testbed.execution.contacts import Contacts
from testbed.execution.specs import node_specs
from testbed.faults.application import AppliedChange, Change
from testbed.faults.clocks import wrong_clocks
from topologies.jitter import deviation
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace, RateCurve

UPTIME_MAX_US = 30 * 24 * 3600 * 1_000_000


def make_network(
    plan: Plan,
    run: RunDirectory,
    observer: Observer,
    build: Build = build_machine,
    sent: Sent | None = None,
) -> SimulatedNetwork:
    """Return the plan's network, before any process is started. sent: see `SimulatedNetwork`."""
    contacts, wrong = Contacts(plan), wrong_clocks(plan.changes)

    def renewed(spec: NodeSpec) -> NodeSpec:
        members = contacts.members_for(spec.name, spec.start)
        return spec if members is None else replace(spec, members=tuple(Member(**each) for each in members))

    return SimulatedNetwork(
        make_specs(plan, run),
        make_wiring(plan),
        build=build,
        start=False,
        observer=observer,
        seed=plan.seed,
        uptimes_us={
            process.name: uptime_us(process.name, plan.seed) + (UPTIME_US if process.name in wrong else 0)
            for process in plan.processes
        },
        renewed=renewed,
        sent=sent,
    )


def uptime_us(name: str, seed: int) -> int:
    """Return the uptime of a process's machine at the start, different for each, as real clocks differ."""
    return Random(f"up {seed} {name}").randrange(UPTIME_MAX_US)  # noqa: S311  reproducible


def make_specs(plan: Plan, run: RunDirectory) -> list[NodeSpec]:
    """Return the specification of each process.

    Thousands of processes share the same lists of members.
    """
    given = node_specs(plan, plan.processes, run, lambda host: "")
    lists = {id(one["members"]): one["members"] for one in given.values()}
    members = {at: tuple(Member(**member) for member in each) for at, each in lists.items()}
    asked = {process.name: process.subscriptions for process in plan.processes}
    return [
        NodeSpec(
            **{
                **one,
                "members": members[id(one["members"])],
                "subscriptions": asked[name],
                "homes": tuple(one["homes"]),
                "publishers": tuple(map(tuple, one["publishers"])),
                "watches": (),  # observed from outside: `testbed.backends.triggers`
                "netns": None,
                "clock": None,  # set from outside: `SimulatedFaults`
            }
        )
        for name, one in given.items()
    ]


def make_wiring(plan: Plan) -> Wires:
    """Return the links between hosts and regions."""
    lans: dict[str, SimulatedLan] = {}
    lines: dict[Hop, LinkLine] = {}
    for link in plan.links:
        if link.kind == "lan":
            lans[link.b] = SimulatedLan(line_of(link.forward), line_of(link.backward))
    lines |= {hop: line_of(link.towards(direction)) for hop, (link, direction) in carriers(plan).items()}
    selected = selected_hops(plan)
    lines |= {lane: lines[hop] for (hop, _), lane in selected.items()}
    apart = frozenset(separated_pairs(plan))
    lines |= dict.fromkeys(apart, LinkLine(0))
    return Wires(0, {}, lans=lans, lines=lines, routes=hops(plan), apart=apart, selected=selected)


def selected_hops(plan: Plan) -> dict[tuple[Hop, str], Hop]:
    """Return the hops for packets that faults select, by hop and host."""
    hosts = {process.name: process.host for process in plan.processes}
    directions = {(link.name, direction): hop for hop, (link, direction) in carriers(plan).items()}
    found: dict[tuple[Hop, str], Hop] = {}
    for change in plan.changes:
        if isinstance(change, LinkChange) and change.selects is not None and change.selects.process:
            hop, host = directions.get((change.link, change.direction)), hosts[change.selects.process]
            if hop is not None:
                found[hop, host] = (f"{hop[0]} of {host}", hop[1])
    return found


def separated_pairs(plan: Plan) -> Iterator[Hop]:
    """Yield the pairs of hosts between which some change drops packets."""
    hosts = {process.name: process.host for process in plan.processes}
    for change in plan.changes:
        if isinstance(change, ProcessChange) and change.action is ProcessAction.SEPARATE:
            for peer in change.peers:
                yield hosts[change.process], hosts[peer]
                yield hosts[peer], hosts[change.process]


def line_of(
    parameters: LinkParameters, trace: LinkTrace | None = None, zero_us: int | None = None
) -> LinkLine:
    """Return the simulator's model of link parameters: without queue limits, without duplicates, which TCP
    discards, and within regions without jitter.

    trace: the trace that it follows from `zero_us` on, if time 0 is known.
    """
    line = LinkLine(
        parameters.delay_us,
        parameters.rate_bits_per_s,
        parameters.loss,
        parameters.loss_chances,
        jitter_us=parameters.jitter_us,
        jitter_correlation=parameters.jitter_correlation,
        corrupt=parameters.corrupt,
        deviation=partial(deviation, parameters.jitter_quantiles) if parameters.jitter_quantiles else None,
    )
    if trace is None or zero_us is None:
        return line
    if parameters.rate_traced and trace.rate is not None and parameters.rate_bits_per_s is not None:
        curve = RateCurve(zero_us * 1000, parameters.rate_bits_per_s, trace.rate)
        line = replace(line, sent_us=lambda begin_us, size: curve.sent_ns(int(begin_us * 1000), size) / 1000)
    if parameters.delay_traced and (steps := trace.delay) is not None:

        def delay_at_us(now_us: int) -> int:
            since_us = now_us - zero_us
            return parameters.delay_us if since_us < 0 else steps.values[steps.number_at(since_us)]

        line = replace(line, delay_at_us=delay_at_us)
    return line


class SimulatedFaults:
    """Applies a plan's changes of links and processes to the simulation.

    It tracks which link directions are cut and which hosts are separated, because a change that ends a fault
    may come although the fault, which waited for an event, never began. BLACKHOLE and DOWN are equal here:
    silence.
    """

    def __init__(self, plan: Plan, network: SimulatedNetwork, processes: SimulatedProcesses) -> None:
        self._network, self.processes = network, processes
        self._hosts = {process.name: process.host for process in plan.processes}
        self._links = {link.name: link for link in plan.links}
        self._hops = {
            (link.name, direction): hop for hop, (link, direction) in carriers(plan).items()
        }  # without directions of parallel links that carry nothing
        self._selected = selected_hops(plan)
        self._port = plan.port
        self._cut: set[Hop] = set()  # from region to region, or from host to host
        self._zero_us: int | None = None

    def begin_traces(self, zero_us: int) -> None:
        """Make links follow their traces, which begin at `zero_us`."""
        self._zero_us = zero_us
        for (name, direction), hop in self._hops.items():
            link = self._links[name]
            if (trace := link.trace(direction)) is not None:
                line = line_of(link.towards(direction), trace, zero_us)
                for each in (hop, *(lane for (its, _), lane in self._selected.items() if its == hop)):
                    self._network.change(*each, line)

    def execute(self, index: int, change: Change, now_ns: int) -> AppliedChange:
        """Apply a change now, the `index`-th of the plan; return its result."""
        try:
            if isinstance(change, LinkChange):
                self._change_link(change)
            else:
                ACTIONS[change.action](self, change)
        except TestbedError as error:
            return AppliedChange(index, change, now_ns, None, str(error))
        return AppliedChange(index, change, now_ns, now_ns)

    def reset(self, change: ProcessChange) -> None:
        """Reset connections of a process."""
        if change.port in {None, self._port}:  # a simulated process has no other port
            self._network.reset(change.process, change.peers)

    def change_pairs(self, change: ProcessChange) -> None:
        """Separate a process from its peers, or rejoin it with them."""
        for peer in change.peers:
            pair = self._hosts[change.process], self._hosts[peer]
            self._set_cut(pair, is_cut=change.action is ProcessAction.SEPARATE)

    def _change_link(self, change: LinkChange) -> None:
        hop = self._hops.get((change.link, change.direction))
        if hop is None:
            return
        if change.selects is not None:
            hop = self._selected[hop, self._hosts[change.selects.process or ""]]
        trace = self._links[change.link].trace(change.direction)
        self._network.change(*hop, line_of(change.parameters, trace, self._zero_us))
        self._set_cut(hop, is_cut=change.state is not LinkState.UP)

    def _set_cut(self, hop: Hop, *, is_cut: bool) -> None:
        """Cut or heal a hop, unless it already is in that state."""
        if is_cut and hop not in self._cut:
            self._cut.add(hop)
            self._network.cut(*hop, both=False)
        elif not is_cut and hop in self._cut:
            self._cut.remove(hop)
            self._network.heal(*hop, both=False)


ACTIONS: Mapping[ProcessAction, Callable[[SimulatedFaults, ProcessChange], None]] = {
    ProcessAction.KILL: lambda faults, it: faults.processes.kill(it.process),
    ProcessAction.STOP: lambda faults, it: faults.processes.stop(it.process),
    ProcessAction.CONTINUE: lambda faults, it: faults.processes.resume(it.process),
    ProcessAction.RESTART: lambda faults, it: faults.processes.start(it.process),
    ProcessAction.REPLACE: lambda faults, it: faults.processes.replace(it.process),
    ProcessAction.GIVE_UP: lambda faults, it: faults.processes.give_up(it.process),
    ProcessAction.JOIN: lambda faults, it: faults.processes.start(it.process),
    ProcessAction.LEAVE: lambda faults, it: faults.processes.leave(it.process),
    ProcessAction.SEPARATE: SimulatedFaults.change_pairs,
    ProcessAction.REJOIN: SimulatedFaults.change_pairs,
    ProcessAction.RESET: SimulatedFaults.reset,
    ProcessAction.FILL: lambda faults, it: faults.processes.fill(it.process, it.fault),
    ProcessAction.UNFILL: lambda faults, it: faults.processes.free(it.process, it.rule),
    ProcessAction.SLOW_DISK: lambda faults, it: faults.processes.slow_disk(it),
    ProcessAction.UNSLOW_DISK: lambda faults, it: faults.processes.slow_disk(it),
    ProcessAction.CLOCK: lambda faults, it: faults.processes.set_clock(it),
    ProcessAction.UNCLOCK: lambda faults, it: faults.processes.set_clock(it),
}
"""The meaning of each action in virtual time. A kind of fault that has none there says why (`only_real`)."""
