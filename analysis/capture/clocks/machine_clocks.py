"""The clocks of a run's machines, by host and by capture, and the conversion of times to one clock.

A run on one machine has one clock, and conversions change nothing. For a run on several machines run.json
assigns hosts to machines; the first machine's clock is the run's reference clock. Records about a machine in
run.json have times by that machine's clock, until `on_reference` converts them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from analysis.arrays import Floats, Ints
from analysis.capture.clocks.clock import REFERENCE, OffsetBounds
from analysis.capture.clocks.clocks_file import read_machines
from experiments.records.observations import CaptureRecord
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory

_OF_MACHINES = ("changes", "cpu", "processes")
"""The lists of run.json whose entries have times by the clock of the machine that recorded them."""


@dataclass(frozen=True, slots=True)
class MachineClocks:
    """The clock of each machine and the machine of each host. Others have the reference clock."""

    machine_of: Mapping[str, str] = field(default_factory=dict)
    by_machine: Mapping[str, OffsetBounds] = field(default_factory=dict)

    def clock_of_host(self, host: str | None) -> OffsetBounds:
        """Return the clock of a host's machine."""
        return self.by_machine.get(self.machine_of.get(host or "", ""), REFERENCE)

    def share_clock(self, one: str | None, other: str | None) -> bool:
        """Return whether two hosts have the same clock."""
        return self.machine_of.get(one or "") == self.machine_of.get(other or "")

    def error_bound_ns(self, one: str | None, other: str | None, t_ns: int) -> float | None:
        """Return the error bound of a time from one host to another at `t_ns`; None if they share a clock."""
        if self.share_clock(one, other):
            return None
        return float(self.error_bounds_ns((one,), (other,), np.array([t_ns], np.int64))[0])

    def error_bounds_ns(self, some: Iterable[str | None], others: Iterable[str | None], t_ns: Ints) -> Floats:
        """Return the largest error bounds of times from any of some hosts to any of the others, at `t_ns`.

        Error bounds of two machines add, since the errors may be opposite; hosts with one clock have none.
        """
        first, second = ({self.machine_of.get(host or "", "") for host in hosts} for hosts in (some, others))
        bounds = {name: self._error_bounds_ns(name, t_ns) for name in sorted(first | second)}
        worst = np.zeros(len(t_ns))
        for one, other in product(sorted(first), sorted(second)):
            if one != other:
                worst = np.maximum(worst, bounds[one] + bounds[other])
        return worst

    def _error_bounds_ns(self, machine: str, t_ns: Ints) -> Floats:
        return self.by_machine.get(machine, REFERENCE).error_bounds_ns(t_ns)


ONE_CLOCK = MachineClocks()


def machine_of_capture(capture: CaptureRecord, record: RunRecord) -> str | None:
    """Return the machine of a capture: as recorded, or that of its host or of its side's gateway."""
    if capture.machine is not None:
        return capture.machine
    machine_of = record.machine_of
    if capture.host is not None:
        return machine_of.get(capture.host)
    if any(machine.name == capture.side for machine in record.machines):
        return capture.side
    gateways = {region.name: region.gateway for region in record.plan.regions}
    return machine_of.get(gateways.get(capture.side or "", ""))


def clock_of_capture(capture: CaptureRecord, record: RunRecord, clocks: MachineClocks) -> OffsetBounds:
    """Return the clock that stamped a capture."""
    return clocks.by_machine.get(machine_of_capture(capture, record) or "", REFERENCE)


def read_clocks(run: RunDirectory, record: RunRecord) -> MachineClocks:
    """Return the estimated clocks, or ONE_CLOCK before the estimate. Raises InputError if unreadable."""
    if not record.machines or not run.clocks.is_file():
        return ONE_CLOCK
    kept = read_machines(run)
    return MachineClocks(
        record.machine_of, {each["machine"]: OffsetBounds.from_json(each["clock"]) for each in kept}
    )


def read_on_reference(run: RunDirectory) -> tuple[RunRecord, MachineClocks]:
    """Return the run's record with all times by the run's reference clock, and the clocks."""
    record = run.read_run()
    clocks = read_clocks(run, record)
    return on_reference(record, clocks), clocks


def on_reference(record: RunRecord, clocks: MachineClocks) -> RunRecord:
    """Return the record with the machines' own times converted to the reference clock."""
    if not clocks.by_machine:
        return record
    moved: dict[str, Any] = {
        name: tuple(
            _moved(entry, clocks.by_machine.get(entry.machine or "", REFERENCE))
            for entry in getattr(record, name)
        )
        for name in _OF_MACHINES
    }
    return replace(record, **moved)


def _moved(entry: Any, clock: OffsetBounds) -> Any:
    """Return a list's entry with its times, and those of nested entries, converted."""
    changed: dict[str, Any] = {}
    for each in fields(entry):
        value = getattr(entry, each.name)
        if each.name.endswith("_ns") and value is not None:
            changed[each.name] = clock.at(value)
        elif is_dataclass(value):
            changed[each.name] = _moved(value, clock)
    return replace(entry, **changed)
