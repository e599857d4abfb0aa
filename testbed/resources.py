"""Memory and processors that a run takes, checked before it starts.

A run that does not fit is refused. With very many captures the kernel buffers are smaller
(`testbed.capturing.capture_commands`). The figures are those of our own nodes. They are a lower limit for
programs, which may take more.
"""

import os

import psutil

from experiments.planned.plan import Plan
from testbed.capturing.capture_commands import BUFFER_KIB, buffer_kib, memory_bytes
from testbed.errors import MachineError

NODE_BYTES = 8 << 20
"""Memory of one of our node processes, counting shared pages once: 7 MiB before any event."""
HOST_BYTES = 4 << 20
"""Memory of a host's shell, namespace and interfaces."""
CAPTURE_BYTES = 1 << 20
"""Memory of a tcpdump, without its buffer."""
RESERVE_BYTES = 512 << 20
"""Memory for the command itself, the relay and other processes of the machine."""
PROCESSES_PER_PROCESSOR_MAX = 150
"""With more, nodes hardly become ready: 500 on two busy processors were not ready after 300 s."""


def check_resources(plan: Plan) -> None:
    """Raise MachineError if the run does not fit into this machine."""
    processors, processes = len(os.sched_getaffinity(0)), len(plan.processes)
    if processes > processors * PROCESSES_PER_PROCESSOR_MAX:
        most = processors * PROCESSES_PER_PROCESSOR_MAX
        raise MachineError(
            f"{processes:,} processes are too many for {processors} processors, which run at most {most:,}:"
            " choose fewer, `--on simulator`, or the machines of an inventory"
        )
    needed, free = needed_bytes(plan), psutil.virtual_memory().available
    if needed > free:
        raise MachineError(
            f"{processes:,} processes and {len(plan.captures):,} captures need about {needed >> 20:,} MiB of"
            f" memory, but only {free >> 20:,} MiB are free: choose fewer, captures of gateways alone,"
            " `--on simulator`, or the machines of an inventory"
        )


def smaller_buffers(plan: Plan) -> str | None:
    """Return a warning if captures get smaller buffers than usual."""
    size_kib = buffer_kib(len(plan.captures), memory_bytes())
    if size_kib == BUFFER_KIB:
        return None
    total_mib = len(plan.captures) * size_kib >> 10
    return (
        f"{len(plan.captures):,} captures get buffers of {size_kib:,} KiB, not {BUFFER_KIB:,},"
        f" {total_mib:,} MiB together: on a busy machine more packets may be missing in them"
    )


def needed_bytes(plan: Plan) -> int:
    """Return about how much memory a run takes here, in bytes."""
    buffers = len(plan.captures) * (buffer_kib(len(plan.captures), memory_bytes()) << 10)
    counts = {NODE_BYTES: plan.processes, HOST_BYTES: plan.hosts, CAPTURE_BYTES: plan.captures}
    return RESERVE_BYTES + buffers + sum(size * len(each) for size, each in counts.items())
