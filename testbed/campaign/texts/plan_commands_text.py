"""The commands of a run as rows of text: machines, programs, captures and their disk."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from experiments.backend_names import LOCAL, SIMULATOR
from experiments.child_python import python_command
from experiments.planned.plan import Plan
from experiments.records.rundir import RunDirectory
from testbed.campaign.texts.plan_network_text import Row
from testbed.capturing.capture_commands import TcpdumpPoint, tcpdump_command
from testbed.capturing.capture_size import capture_bytes_per_s, disk_needed_bytes
from testbed.network.commands import inside_lines
from testbed.network.network_layout import make_layout
from testbed.programs import LAUNCHER, launches_of
from testbed.run_selection import RunSelection
from testbed.sandbox.commands import sandbox_command

PYTHON = "python"  # its path is no part of the plan


def machine_rows(plan: Plan, chosen: RunSelection) -> Iterator[Row]:
    """Yield the hosts of each machine of an inventory, if the run uses one."""
    if chosen.backend in {LOCAL, SIMULATOR}:
        return
    from testbed.machines.inventory import load_inventory
    from testbed.machines.placement import place

    placement = place(plan, load_inventory(Path(chosen.backend)))
    for machine in placement.machines:
        yield machine.name, machine.control, " ".join(placement.hosts(machine))


def command_rows(plan: Plan, *, full: bool) -> Iterator[Row]:
    inside = python_command("testbed.runner", "RUN", python=PYTHON)
    yield "sandbox", shlex.join(sandbox_command(inside, user_namespace=True))
    layout = make_layout(plan)
    lines = [(host.name, line) for host in plan.hosts for line in inside_lines(layout, host.name)]
    if full:
        yield from (("network", f"in {host}: ip {line}") for host, line in lines)
    else:
        yield "network", f"ip -batch: {len(lines)} lines in {len(plan.hosts)} hosts (--full shows them)"
    captures = [_capture_command(plan, number) for number in range(len(plan.captures))]
    yield from (("capture", text) for text in (captures if full else captures[:1]))
    if len(captures) > 1 and not full:
        yield "", f"and {len(captures) - 1} more of this kind"
    yield (
        "nodes",
        f"{shlex.join(python_command(LAUNCHER, python=PYTHON))} (forks {len(plan.processes)} processes)",
    )
    yield from _program_rows(plan, full=full)


def _program_rows(plan: Plan, *, full: bool) -> Iterator[Row]:
    """Yield the programs that processes start: without --full only the first process of each role."""
    shown: set[str] = set()
    for name, launch in launches_of(plan, RunDirectory(Path("RUN"))).items():
        role = next(each.role for each in plan.processes if each.name == name)
        if full or role not in shown:
            shown.add(role)
            yield "program", f"{name}: {shlex.join(launch['program']['run'])}"
            if image := launch["program"]["image"]:
                yield "", f"in the image {image['source']}, {image['digest']} {image['version']}".rstrip()
    if (more := 0 if full else len(plan.processes) - len(shown)) and shown:
        yield "", f"and {more} more of these kinds"


def _capture_command(plan: Plan, number: int) -> str:
    capture = plan.captures[number]
    point = TcpdumpPoint(capture, netns=f"/proc/PID_OF_{capture.host}/ns/net", interface=capture.interface)
    if capture.link:
        point = TcpdumpPoint(capture, netns=None, interface=f"SIDE_{capture.side}_OF_{capture.link}")
    path = Path("captures") / capture.file
    return shlex.join(tcpdump_command(point, path, snaplen_bytes=plan.snaplen_bytes, root=False))


def disk_rows(plan: Plan) -> Iterator[Row]:
    if not plan.captures:
        yield ("nothing is captured",)
        return
    yield (
        f"about {disk_needed_bytes(plan) / 1e9:.1f} GB for {len(plan.captures)} captures, "
        f"{capture_bytes_per_s(plan) / 1e6:.0f} MB/s",
    )
