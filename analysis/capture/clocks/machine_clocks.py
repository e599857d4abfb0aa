"""The clocks of a run's machines: which host and which capture went by which, and times moved to one.

A run on one machine has one clock, and all of this changes nothing. Of a run on several machines run.json
says which hosts stood on which; the first machine's clock is the run's reference clock. What run.json tells
of a machine has times by that machine's clock, until `on_reference` moves them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from analysis.capture.clocks.clock import REFERENCE, Clock, Floats, Ints

Json = Mapping[str, Any]

_OF_MACHINES = ("changes", "cpu", "processes", "probes", "counters", "captures")
"""What stands in run.json with the machine that it was seen on."""


@dataclass(frozen=True, slots=True)
class MachineClocks:
    """The clock of each machine, and the machine of each host. Unnamed ones have the reference clock."""

    machine_of: Mapping[str, str] = field(default_factory=dict)
    by_machine: Mapping[str, Clock] = field(default_factory=dict)

    def of(self, host: str | None) -> Clock:
        """A host's clock."""
        return self.by_machine.get(self.machine_of.get(host or "", ""), REFERENCE)

    def together(self, one: str | None, other: str | None) -> bool:
        """Whether two hosts have the same clock."""
        return self.machine_of.get(one or "") == self.machine_of.get(other or "")

    def bar_ns(self, one: str | None, other: str | None, t_ns: int) -> float | None:
        """By how much a time from one host to another may be wrong, about this time; None for one clock."""
        if self.together(one, other):
            return None
        return float(self.bars_ns((one,), (other,), np.array([t_ns], np.int64))[0])

    def bars_ns(self, some: Iterable[str | None], others: Iterable[str | None], t_ns: Ints) -> Floats:
        """By how much times from any of some hosts to any of the others may be wrong, about these times.

        Two machines' bars add, as their clocks may be off to opposite sides; one clock has no bar.
        """
        first, second = ({self.machine_of.get(host or "", "") for host in hosts} for hosts in (some, others))
        bar = {name: self._bars_ns(name, t_ns) for name in sorted(first | second)}
        worst = np.zeros(len(t_ns))
        for one, other in product(sorted(first), sorted(second)):
            if one != other:
                worst = np.maximum(worst, bar[one] + bar[other])
        return worst

    def _bars_ns(self, machine: str, t_ns: Ints) -> Floats:
        return self.by_machine.get(machine, REFERENCE).bars_ns(t_ns)


ONE_CLOCK = MachineClocks()


def machines_of(run: Json) -> list[str]:
    """The machines of a run, the reference first; none where there is one clock."""
    return [str(machine["name"]) for machine in run.get("machines") or ()]


def hosts_of(run: Json) -> dict[str, str]:
    """The machine of each host."""
    return {str(host): str(each["name"]) for each in run.get("machines") or () for host in each["hosts"]}


def machine_of_capture(capture: Json, run: Json) -> str | None:
    """The machine on which a capture was made: as it says, or where its host or its side's gateway stands."""
    if capture.get("machine"):
        return str(capture["machine"])
    hosts = hosts_of(run)
    if capture.get("host"):
        return hosts.get(capture["host"])
    gateways = {region["name"]: region["gateway"] for region in (run.get("plan") or {}).get("regions", ())}
    side = str(capture.get("side"))
    return side if side in machines_of(run) else hosts.get(gateways.get(side, ""))


def wires_of(run: Json) -> frozenset[str]:
    """The capture files that only serve to compare clocks: their packets are in others, too."""
    captures = [*(run.get("captures") or ()), *((run.get("plan") or {}).get("captures") or ())]
    return frozenset(Path(capture["file"]).name for capture in captures if capture.get("wire"))


def clock_of_capture(capture: Json, run: Json, clocks: MachineClocks) -> Clock:
    """The clock by which a capture was made."""
    return clocks.by_machine.get(machine_of_capture(capture, run) or "", REFERENCE)


def on_reference(run: Json, clocks: MachineClocks) -> dict[str, Any]:
    """run.json's content with all that machines said of themselves at times by the reference clock."""
    if not clocks.by_machine:
        return dict(run)
    moved = {
        name: [
            _moved(entry, clocks.by_machine.get(str(entry.get("machine")), REFERENCE)) for entry in run[name]
        ]
        for name in _OF_MACHINES
        if isinstance(run.get(name), list)
    }
    return dict(run) | moved


def _moved(value: Any, clock: Clock, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _moved(each, clock, key) for key, each in value.items()}
    return clock.at(value) if name.endswith("_ns") and isinstance(value, int) else value
