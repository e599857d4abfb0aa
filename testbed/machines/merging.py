"""Merges the run.json files of all machines into one. Pure.

Entries of lists get the name of the machine that they come from, and keep the times of that machine's clock;
the run's own times are by the clock of the first machine, the reference. Each machine's time 0, and the
offset of its clock from ours over the control connection, are in `machines`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.machines.facts import ClockReading
from testbed.machines.placement import Placement
from testbed.runner.phases import Outcome, Phase
from testbed.sanitize import sanitize

LISTS = ("changes", "processes", "captures", "probes", "counters", "cpu")
_PHASES = list(Phase)

Content = dict[str, Any]


def machines_json(
    placement: Placement, zeros: Mapping[str, int], clocks: Mapping[str, ClockReading | None]
) -> list[Content]:
    """The field `machines` of run.json."""
    entries = []
    for machine in placement.machines:
        clock = clocks.get(machine.name)
        entries.append(
            {
                "name": machine.name,
                "hosts": placement.hosts(machine),
                "zero_ns": zeros.get(machine.name),
                "control_offset_ns": None if clock is None else clock.offset_ns,
                "control_error_ns": None if clock is None else clock.error_ns,
            }
        )
    return entries


def merged(base: Content, parts: Mapping[str, Content], order: Sequence[str]) -> Content:
    """The merged run.json. base: the run.json that was planned, with `machines` and the problems that the
    controller noticed. parts: of the machines that have one, by name. order: all machines, the reference
    first.
    """
    known = {name: parts[name] for name in order if name in parts}
    content = {**base, **{key: [*base[key]] for key in (*LISTS, "problems")}}
    for name, part in known.items():
        for key in LISTS:
            content[key] += [{**entry, "machine": name} for entry in part[key]]
        for text in part["problems"]:
            line = f"{name}: {sanitize(str(text))}"
            if line not in content["problems"]:
                content["problems"].append(line)
    content["changes"].sort(key=lambda change: change["requested_ns"] - _zero(content, change["machine"]))
    if known:
        first = next(iter(known.values()))
        content["times"] = {**base["times"], **first["times"]}
        if not all("drained_ns" in part["times"] for part in known.values()):
            content["times"].pop("drained_ns", None)
        content["links"] = "+".join(sorted({part["links"] for part in known.values()}))
        content["links_without_emulator"] = sorted(
            {link for part in known.values() for link in part.get("links_without_emulator", [])}
        )
        content["tcp"] = first["tcp"]
        content["phase"] = min((Phase(part["phase"]) for part in known.values()), key=_PHASES.index)
    content["outcome"] = _outcome(list(known.values()), missing=len(order) - len(known))
    return content


def _zero(content: Content, machine: str) -> int:
    entry = next(each for each in content["machines"] if each["name"] == machine)
    return entry["zero_ns"] or 0


def _outcome(parts: Sequence[Content], *, missing: int) -> Outcome:
    """A run is as complete as its least complete part."""
    outcomes = {part["outcome"] for part in parts}
    if missing or Outcome.CRASHED in outcomes or None in outcomes:
        return Outcome.CRASHED
    return Outcome.INTERRUPTED if Outcome.INTERRUPTED in outcomes else Outcome.COMPLETED
