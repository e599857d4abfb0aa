"""Reads and validates clocks.json, since a run's directory may come from an untrusted source.

The analysis writes the file (`run_clocks`). Readers get plain data of the right types, or an InputError.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from experiments.records.validated_json import STRICT, Count, Name, from_json, to_json
from topologies.errors import InputError

MAX_NS = 1 << 61
"""Limit of times and offsets: the sum of two, with a margin, fits into 64 bits."""
WholeNs = Annotated[int, Field(gt=-MAX_NS, lt=MAX_NS)]
Ns = Annotated[float, Field(gt=-MAX_NS, lt=MAX_NS)]
Ppm = Annotated[float, Field(ge=-1e6, le=1e6)]


@dataclass(frozen=True, slots=True)
class SteadyPeriod:
    """A period, by the machine's own clock, in which its clock ran at a steady rate."""

    from_ns: WholeNs
    to_ns: WholeNs
    offset_ns: Ns  # in the middle
    bar_ns: Ns  # the widest error bound
    drift_ppm: Ppm
    drift_error_ppm: Ppm


@dataclass(frozen=True, slots=True)
class _ClockEntry:
    t_ns: Annotated[tuple[WholeNs, ...], Field(min_length=2)]
    low_ns: tuple[Ns, ...]
    high_ns: tuple[Ns, ...]
    low_next_ns: tuple[Ns, ...]
    high_next_ns: tuple[Ns, ...]


@dataclass(frozen=True, slots=True)
class _MachineEntry:
    machine: Name
    source: Literal["reference", "packets", "control", "nothing"]
    way: tuple[Name, ...]
    seen_there: Count
    seen_back: Count
    contradictions: Count
    least_used: bool
    error_median_ns: Ns
    error_max_ns: Ns
    stretches: tuple[SteadyPeriod, ...]
    clock: _ClockEntry


@dataclass(frozen=True, slots=True)
class _Clocks:
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: int
    machines: tuple[_MachineEntry, ...]


def read_machines(run: RunDirectory) -> list[dict[str, Any]]:
    """Return the entry of each machine; none for a run with one clock. Raises InputError."""
    if not run.clocks.is_file():
        return []
    found = from_json(_Clocks, read_json(run.clocks), run.clocks)
    for number, each in enumerate(found.machines):
        for field, problem in _contradictions(each):
            raise InputError(str(run.clocks), None, f"machines.{number}.{field}", problem)
    machines: list[dict[str, Any]] = to_json(found)["machines"]
    return machines


def _contradictions(machine: _MachineEntry) -> Iterator[tuple[str, str]]:
    """Yield the field and the problem of each contradiction."""
    clock = machine.clock
    if any(later < earlier for earlier, later in pairwise(clock.t_ns)):
        yield "clock.t_ns", "must ascend"
    for name in ("low_ns", "high_ns", "low_next_ns", "high_next_ns"):
        if len(getattr(clock, name)) != len(clock.t_ns) - 1:
            yield f"clock.{name}", "must have one entry for each stretch between two knots"
    if machine.source in {"packets", "control"} and not machine.stretches:
        yield "stretches", "must not be empty if the clock is known"
