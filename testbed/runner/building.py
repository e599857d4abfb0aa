"""The first phase: builds network and captures, probes, and starts processes until all are ready.

The launcher starts first, because it imports the nodes' code while the network is built. It starts nodes
last, so that the probes measure an idle network.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import replace

from experiments.planned.plan import Plan
from experiments.records.observations import When
from experiments.records.run_record import TcpRecord
from testbed.assignment import Assignment, assigned_part, changes_here
from testbed.capturing.capture_commands import TcpdumpPoint
from testbed.capturing.captures import TcpdumpCaptures
from testbed.execution.contacts import Contacts
from testbed.execution.record import RunRecordWriter
from testbed.execution.specs import node_specs
from testbed.faults.clocks import Clocks
from testbed.links.selection import select_emulator
from testbed.links.wiring import links_without_emulator
from testbed.network.network import Network
from testbed.network.routing.daemons import RoutingDaemons
from testbed.processes import NodeProcess, Processes
from testbed.programs import longest_ready_s, start_order
from testbed.runner.barrier import Barrier, Barriers
from testbed.runner.disks.own_disks import OwnDisks, own_disks
from testbed.runner.disks.slow_disks import SlowDisks, slow_disks
from testbed.runner.run_context import RunContext, Termination
from testbed.runner.throttles import EVERY_VARIABLE, Throttles, throttled
from testbed.sandbox.outside import RUN_VARIABLE
from testbed.traffic import TrafficGenerators

READY_S = 30.0
READY_PER_NODE_S = 0.2


async def build(
    plan: Plan,
    assignment: Assignment,
    record: RunRecordWriter,
    termination: Termination,
    *,
    barriers: Barriers,
    stack: AsyncExitStack,
) -> RunContext:
    """Build the network of the part of the plan that is assigned to this machine; `stack` releases it.

    Raises EndedEarlyError if the run has to end meanwhile, MachineError, TestbedError.
    """
    processes = Processes(on_exit=lambda node: _on_exit(context, node))
    slow = SlowDisks(slow_disks(plan), record.problem)
    processes.on_suspends = slow.take
    stack.callback(slow.close)  # after the processes have ended
    await processes.start_launcher(sys.stderr)
    stack.push_async_callback(processes.finish)
    emulator = select_emulator(plan.links_kind, plan.seed)
    network = stack.enter_context(Network(plan, emulator, assignment, termination.check))
    record.time("network_ns")
    record.note(
        links=emulator.kind,
        links_without_emulator=links_without_emulator(plan, assignment),
        tcp=TcpRecord(network.congestion_control),
    )
    if plan.congestion_control not in {None, network.congestion_control}:
        record.problem(
            f"TCP may not use {plan.congestion_control} here: it uses {network.congestion_control}"
        )
    captures = TcpdumpCaptures(record.directory.captures, root=os.getuid() == 0, on_problem=record.problem)
    stack.push_async_callback(captures.stop)
    traffic = TrafficGenerators(plan, record.directory, network.netns)
    stack.push_async_callback(traffic.finish, at_once=True)
    routing = RoutingDaemons(plan, record.directory, network.netns)
    stack.push_async_callback(routing.stop)
    here = assigned_part(plan, assignment)
    specs = node_specs(plan, here.processes, record.directory, network.netns, assignment.system_folder)
    token = os.environ[RUN_VARIABLE]
    grouped = specs.keys() if os.environ.get(EVERY_VARIABLE) == token else throttled(plan) & specs.keys()
    throttles = Throttles(
        {name: specs[name]["host"] for name in grouped},
        token,
        lambda ended: record.note(throttles=(*record.content.throttles, ended)),
    )
    context = RunContext(
        here,
        assignment,
        barriers,
        record,
        termination,
        network,
        emulator,
        captures,
        processes,
        specs,
        Contacts(plan),
        changes_here(plan, assignment),
        traffic,
        routing,
        OwnDisks(specs, own_disks(plan)),
        slow,
        Clocks(),
        throttles,
    )
    context.disks.make()
    throttles.make()
    for name, spec in specs.items():
        spec["control_groups"] = throttles.entries(name)
    return context


async def start_all(context: RunContext) -> None:
    """Start captures, routing and the processes that do not join later; return when they are ready."""
    points = [TcpdumpPoint(*point) for point in context.network.capture_points()]
    await context.captures.start(points, snaplen_bytes=context.plan.snaplen_bytes)
    await context.routing.start()
    await context.barriers.wait(Barrier.NETWORK)
    await probe(context, "before")
    await context.barriers.wait(Barrier.PROBED)
    await context.traffic.listen()
    names = [name for name in context.specs if name not in context.plan.joining]
    at_most_s = max(READY_S, longest_ready_s(context.plan)) + READY_PER_NODE_S * len(names)
    for number, together in enumerate(start_order(context.plan, names)):
        if number:
            await context.barriers.wait(Barrier.SERVING)
        for name in together:
            context.processes.start(context.specs[name])
        await context.processes.wait_ready(together, at_most_s)
    context.note_processes()


async def probe(context: RunContext, when: When) -> None:
    """Record round trips between all regions."""
    found = await asyncio.to_thread(context.network.probe, when)
    context.record.note(probes=(*context.record.content.probes, *found))


def _on_exit(context: RunContext, node: NodeProcess) -> None:
    assert node.exit is not None
    if context.throttles.starved(node.name):
        node.exit = replace(node.exit, expected=True, starved=True)
        context.record.notify("starved", process=node.name, time_ns=node.exit.time_ns)
    if not node.exit.expected:
        context.record.problem(
            f"{node.name} ended unexpectedly ({node.how_it_ended}): see logs/{node.host}.jsonl"
        )
