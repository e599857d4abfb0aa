"""What of this machine a run takes, said before it starts: memory, and processes for each processor.

A run that does not fit is refused; one with very many captures gets smaller kernel buffers for them
(`testbed.capturing.capture_commands`). The figures are of our own nodes and a floor for programs, which may
take any more.
"""

import os
from pathlib import Path

from experiments.planned.plan import Plan
from testbed.capturing.capture_commands import BUFFER_KIB, buffer_kib, memory_bytes
from testbed.errors import MachineError

NODE_BYTES = 8 << 20
"""A node process of ours, pages that all share counted once: 7 MiB before anything has happened."""
HOST_BYTES = 4 << 20
"""A host's shell, its namespace and interfaces."""
CAPTURE_BYTES = 1 << 20
"""A tcpdump, without its buffer."""
RESERVE_BYTES = 512 << 20
"""For the command itself, the relay and what else goes on."""
PROCESSES_PER_PROCESSOR_MAX = 150
"""More hardly get ready: of 500 on two processors, with other work beside them, 300 s were not enough."""


def check_resources(plan: Plan) -> None:
    """Raises MachineError if the run would not fit into this machine."""
    processors, processes = len(os.sched_getaffinity(0)), len(plan.processes)
    if processes > processors * PROCESSES_PER_PROCESSOR_MAX:
        most = processors * PROCESSES_PER_PROCESSOR_MAX
        raise MachineError(
            f"{processes:,} processes are too many for {processors} processors, which carry {most:,} at most:"
            " choose fewer, `--on simulator`, or the machines of an inventory"
        )
    needed, free = needed_bytes(plan), available_bytes()
    if needed > free:
        raise MachineError(
            f"{processes:,} processes and {len(plan.captures):,} captures need about {needed >> 20:,} MiB of"
            f" memory, but only {free >> 20:,} MiB are free: choose fewer, captures of gateways alone,"
            " `--on simulator`, or the machines of an inventory"
        )


def smaller_buffers(plan: Plan) -> str | None:
    """That captures get smaller buffers than usual, if so."""
    size_kib = buffer_kib(len(plan.captures), memory_bytes())
    if size_kib == BUFFER_KIB:
        return None
    return (
        f"{len(plan.captures):,} captures get buffers of {size_kib:,} KiB, not {BUFFER_KIB:,}, so that they"
        " fit into the memory: on a busy machine more packets may be missing in them"
    )


def needed_bytes(plan: Plan) -> int:
    """The memory that a run takes here, about."""
    buffers = len(plan.captures) * (buffer_kib(len(plan.captures), memory_bytes()) << 10)
    counts = {NODE_BYTES: plan.processes, HOST_BYTES: plan.hosts, CAPTURE_BYTES: plan.captures}
    return RESERVE_BYTES + buffers + sum(size * len(each) for size, each in counts.items())


def available_bytes() -> int:
    """What may be taken without swapping (MemAvailable of proc(5)); everything, where it is not said."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, size = line.partition(":")
        if name == "MemAvailable":
            return int(size.split()[0]) << 10
    return memory_bytes()
