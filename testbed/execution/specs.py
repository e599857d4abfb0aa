"""The launcher's specification of each node process, computed from the plan. Pure."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from experiments.declared import Trait
from experiments.planned.plan import Plan, ProcessPlan
from experiments.records.rundir import RunDirectory
from node.core.wrong_clock import WrongClock
from testbed.execution.contacts import Contacts
from testbed.faults.clocks import wrong_clocks
from testbed.programs import launches_of, members_of
from testbed.runner.disks.own_disks import ON_OWN_DISK, own_disks
from testbed.runner.disks.slow_disks import slow_disks

NEWCOMERS = (Trait.SUBSCRIBER, Trait.PUBLISHER)
"""Processes that others need not know before they join, unless they are servers, too."""


def node_specs(
    plan: Plan,
    processes: Iterable[ProcessPlan],
    run: RunDirectory,
    netns: Callable[[str], str],
    system_folder: str = "",
) -> dict[str, dict[str, Any]]:
    """Return the launcher's NodeSpec of each of these processes, by name.

    All know all members of the plan, except publishers and subscribers that join later: these are new
    machines, and only they know of themselves. Peers that find each other know one contact at their first
    start; at later starts `spec_for_restart` gives them another.

    netns: returns the path of a host's namespace. system_folder: see `launches_of`.
    """
    shared = {
        "system": plan.system,
        "parameters": plan.parameters,
        "workload": plan.workload,
        "homes": [stream.region for stream in plan.streams],
        "publishers": [stream.publishers for stream in plan.streams],
    }
    addresses = {host.name: host.address for host in plan.hosts}
    members = members_of(plan)
    launches = launches_of(plan, run, system_folder)
    unknown = {
        process.name
        for process in plan.having(*NEWCOMERS)
        if process.name in plan.joining and not plan.declared.has(process.role, Trait.SERVER)
    }
    known = [member for member in members if member["name"] not in unknown]
    contacts, disks, slow = Contacts(plan), own_disks(plan), slow_disks(plan)
    wrong = wrong_clocks(plan.changes)

    def members_for(name: str) -> list[dict[str, Any]]:
        contact = contacts.members_for(name, 0)
        if contact is not None:
            return contact
        return members if name in unknown else known

    return {
        process.name: {
            **_own(process, run, has_own_disk=process.name in disks),
            "watches": _watches(plan, process.name),
            "slow_disk": process.name in slow,
            "clock": dataclasses.asdict(WrongClock()) if process.name in wrong else None,
            "address": addresses[process.host],
            "netns": netns(process.host),
            "members": members_for(process.name),
            "program": launches.get(process.name),
            **shared,
        }
        for process in processes
    }


def spec_for_restart(spec: Mapping[str, Any], contacts: Contacts, start: int) -> Mapping[str, Any]:
    """Return the specification for start number `start`, from 0: a peer gets a contact that runs then."""
    contact = contacts.members_for(spec["name"], start)
    return spec if contact is None else {**spec, "members": contact}


def _watches(plan: Plan, process: str) -> list[dict[str, Any]]:
    """Return the messages that a process must report, by the indexes of the changes that wait for them."""
    return [
        {"index": index, "at_us": change.at_us, "sends": change.when.sends, "times": change.when.times}
        for index, change in enumerate(plan.changes)
        if change.when is not None and change.when.process == process
    ]


def _own(process: ProcessPlan, run: RunDirectory, *, has_own_disk: bool) -> dict[str, Any]:
    storage = run.storage(process.host)
    if has_own_disk:
        storage /= ON_OWN_DISK
    return {
        **dataclasses.asdict(process),
        "start": 0,
        "log": str(run.log(process.host)),
        "deliveries": str(run.host_deliveries(process.host)),
        "storage": str(storage),
    }
