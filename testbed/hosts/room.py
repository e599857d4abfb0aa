"""Whether a run's captures fit on the machines that make them, before anything starts."""

from collections.abc import Sequence

from testbed.errors import MachineError
from testbed.hosts.checks import Examined
from testbed.hosts.placement import Placement
from testbed.plan import Plan
from testbed.runner.start import DISK_RESERVE_BYTES
from testbed.volume import disk_needed_bytes


def check_room(plan: Plan, placement: Placement, examined: Sequence[Examined]) -> None:
    """Raises MachineError, with all machines that are too full, if the captures would not fit."""
    free_bytes = {each.machine.name: each.facts.folder.free_bytes for each in examined if each.facts}
    problems = []
    for machine in placement.machines:
        needed = needed_bytes(plan, len(placement.hosts(machine)))
        if free_bytes[machine.name] < needed:
            problems.append(
                f"{machine.name}: its captures need about {needed >> 20} MiB below {machine.folder}, but only"
                f" {free_bytes[machine.name] >> 20} MiB are free"
            )
    if problems:
        advice = "name another `folder:` in the inventory, or choose a shorter run or a snap length"
        raise MachineError(f"{'; '.join(problems)}: {advice}")


def needed_bytes(plan: Plan, hosts: int) -> int:
    """What a machine with so many of the plan's hosts needs: each host captures about as much as another."""
    return disk_needed_bytes(plan) * hosts // len(plan.hosts) + DISK_RESERVE_BYTES
