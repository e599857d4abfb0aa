"""The first phase: network, captures, probes, node processes; ends when all nodes that are there from the
beginning are ready.

The launcher is started first, because it imports the nodes' code while the network is built; it is given
nodes last, so that the probes measure an idle network.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from experiments.plan import Plan
from testbed.captures import CapturePoint, Captures
from testbed.links.emulator import links_without_emulator
from testbed.links.selection import select_emulator
from testbed.network import Network
from testbed.processes import NodeProcess, Processes
from testbed.runner.meeting import Meeting, MeetingPlace
from testbed.runner.phases import Phase
from testbed.runner.record import RunRecord
from testbed.runner.specs import node_specs
from testbed.runner.stage import Ending, Stage
from testbed.share import Share, part_of

READY_S = 30.0
READY_PER_NODE_S = 0.2


async def build(
    plan: Plan, share: Share, record: RunRecord, ending: Ending, *, meeting: Meeting, stack: AsyncExitStack
) -> Stage:
    """Build what the share has of the plan; it is released by `stack`. Raises MachineError, TestbedError.

    When the run is to end meanwhile, what there is so far is returned.
    """
    record.phase(Phase.BUILDING)
    processes = Processes(on_exit=lambda node: _on_exit(stage, node))
    await processes.start_launcher(sys.stderr)
    stack.push_async_callback(processes.finish)
    emulator = select_emulator(plan.links_kind, plan.seed)
    network = stack.enter_context(Network(plan, emulator, share))
    record.time("network_ns")
    record.content["links"] = emulator.kind
    record.content["links_without_emulator"] = list(links_without_emulator(plan, share))
    record.content["tcp"] = {"congestion_control": network.congestion_control}
    if plan.congestion_control not in {None, network.congestion_control}:
        record.problem(
            f"TCP may not use {plan.congestion_control} here: it uses {network.congestion_control}"
        )
    captures = Captures(record.directory.captures, root=os.getuid() == 0, on_problem=record.problem)
    stack.push_async_callback(captures.stop)
    here = part_of(plan, share)
    specs = node_specs(plan, here.processes, record.directory, network.netns)
    stage = Stage(here, share, meeting, record, ending, network, emulator, captures, processes, specs)
    await ending.or_done(_start_all(stage))
    return stage


async def _start_all(stage: Stage) -> None:
    points = [CapturePoint(*point) for point in stage.network.capture_points()]
    await stage.captures.start(points, snaplen_bytes=stage.plan.snaplen_bytes)
    await stage.meeting.at(MeetingPlace.NETWORK)
    await probe(stage, "before")
    await stage.meeting.at(MeetingPlace.PROBED)
    names = [name for name in stage.specs if name not in stage.plan.joining]
    for name in names:
        stage.processes.start(stage.specs[name])
    await stage.processes.wait_ready(names, READY_S + READY_PER_NODE_S * len(names))
    stage.note_processes()
    stage.record.time("ready_ns")


async def probe(stage: Stage, when: str) -> None:
    """Round trips between all regions, into the record. `when` is "before" or "after" the nodes."""
    for sample in await asyncio.to_thread(stage.network.probe, when):
        stage.record.append("probes", sample)


def _on_exit(stage: Stage, node: NodeProcess) -> None:
    if node.exit is not None and not node.exit["expected"]:
        how = f"signal {node.exit['signal']}" if node.exit["signal"] else f"exit code {node.exit['code']}"
        stage.record.problem(f"{node.name} ended unexpectedly ({how}): see logs/{node.host}.jsonl")
