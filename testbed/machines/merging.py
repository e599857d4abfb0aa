"""The merge of the run.json files of all machines into one. Pure.

Entries of lists get the name of their machine, and keep the times of that machine's clock; the run's own
times are by the clock of the first machine, the reference. `machines` has each machine's time 0, and the
offset of its clock from ours, measured over the control connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.files.sanitize import sanitize
from experiments.records.observations import MachineShare
from experiments.records.run_record import Outcome, RunPhase, RunRecord
from testbed.machines.facts import ClockReading
from testbed.machines.placement import Placement
from testbed.machines.software.needed_programs import Versions

UNENDED = "its part has no outcome: it goes on there, or was ended early (`hosts --clean`, a power failure)"

_PHASES = list(RunPhase)
_LISTS = ("changes", "processes", "throttles", "captures", "probes", "counters", "cpu")
"""The fields of a record whose entries each belong to one machine."""


def machine_shares(
    placement: Placement,
    zeros: Mapping[str, int],
    clocks: Mapping[str, ClockReading | None],
    versions: Mapping[str, Versions],
) -> tuple[MachineShare, ...]:
    """Return `machines` of the run's record. versions: of the needs of programs, by machine."""
    return tuple(
        MachineShare(
            machine.name,
            tuple(placement.hosts(machine)),
            zeros.get(machine.name),
            None if (clock := clocks.get(machine.name)) is None else clock.offset_ns,
            None if clock is None else clock.error_ns,
            dict(versions.get(machine.name, {})),
        )
        for machine in placement.machines
    )


def merged(base: RunRecord, parts: Mapping[str, RunRecord], order: Sequence[str]) -> RunRecord:
    """Return the record of the whole run.

    base: the planned record, with `machines` and the controller's problems; a machine's time 0 is from its
    own record if the controller died before it. parts: the records of machines that have one, by name. order:
    all machines, the reference first.
    """
    known = {name: parts[name] for name in order if name in parts}
    said = [f"{name}: {sanitize(text)}" for name, part in known.items() for text in part.problems]
    earlier = [line for line in base.problems if not line.endswith(UNENDED)]
    said += [f"{name}: {UNENDED}" for name, part in known.items() if part.outcome is None]
    starts = {name: part.times.zero_ns for name, part in known.items()}
    machines = tuple(
        each if each.zero_ns else replace(each, zero_ns=starts.get(each.name)) for each in base.machines
    )
    zeros = {machine.name: machine.zero_ns or 0 for machine in machines}
    lists: dict[str, Any] = {
        field: tuple(
            replace(each, machine=name) for name, part in known.items() for each in getattr(part, field)
        )
        for field in _LISTS
    }
    lists["changes"] = tuple(
        sorted(lists["changes"], key=lambda each: each.requested_ns - zeros[each.machine])
    )
    record = replace(
        base,
        **lists,
        machines=machines,
        problems=tuple(dict.fromkeys((*earlier, *said))),
        outcome=_outcome(list(known.values()), missing=len(order) - len(known)),
    )
    if not known:
        return record
    drained = all(part.times.drained_ns is not None for part in known.values())
    first = next(iter(known.values()))
    return replace(
        record,
        times=replace(
            first.times,
            started_ns=first.times.started_ns or base.times.started_ns,
            drained_ns=first.times.drained_ns if drained else None,
        ),
        links="+".join(sorted({part.links for part in known.values()})),
        links_without_emulator=tuple(
            sorted({link for part in known.values() for link in part.links_without_emulator})
        ),
        tcp=first.tcp,
        phase=min((part.phase for part in known.values()), key=_PHASES.index),
    )


def _outcome(parts: Sequence[RunRecord], *, missing: int) -> Outcome:
    """Return the outcome of a run: that of its least complete part."""
    outcomes = {part.outcome for part in parts}
    if missing or Outcome.CRASHED in outcomes or None in outcomes:
        return Outcome.CRASHED
    return Outcome.INTERRUPTED if Outcome.INTERRUPTED in outcomes else Outcome.COMPLETED
