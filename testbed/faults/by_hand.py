"""Faults that somebody asks for while the run is on, beside those that its experiment has. Pure.

One that is asked for becomes what it would be had it stood in the experiment's file with this time: it is
validated in the same way, has a name (its kind and a number), adds up with the others by the same rules
(`testbed.faults.timeline`) and stands in the plan afterwards, so that whoever reads the run finds it like any
other. What has already happened never changes by what is asked for later.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from experiments.checks import problems
from experiments.faults import KIND_NAMES, Fault
from experiments.model import DURATION_US_MIN, Experiment
from experiments.plan import LinkChange, Plan, ProcessChange
from testbed.errors import TestbedError
from testbed.faults.timeline import FOREVER_US
from testbed.planning import all_changes, with_faults
from topologies.document import Document, dotted, validated
from topologies.errors import InputError
from topologies.model import Topology


class RefusedFaultError(TestbedError):
    """What was asked for cannot be, or would change nothing."""


@dataclass(frozen=True)
class FaultsByHand:
    """An experiment with all the faults so far, and what follows from them."""

    experiment: Experiment
    topology: Topology

    @cached_property
    def changes(self) -> tuple[LinkChange | ProcessChange, ...]:
        """Every change of links and processes, by time, as if the run never ended."""
        return all_changes(self.experiment.faults, self.topology, FOREVER_US)

    def with_fault(self, given: Mapping[str, Any], at_us: int) -> "FaultsByHand":
        """With this fault, in the form of the file, happening at `at_us`, later than all that has happened.

        Raises RefusedFaultError, which says why it cannot be.
        """
        kind = next((name for name in KIND_NAMES if name in given), "fault")
        known = {fault.name for fault in self.experiment.faults}
        name = next(name for n in range(1, len(known) + 2) if (name := f"{kind}-{n}") not in known)
        data = self.experiment.to_json()
        data["faults"] = [*data.get("faults", ()), {"name": name, "at": f"{at_us}us", **given}]
        data["duration"] = f"{max(self.experiment.duration_us, at_us + 1)}us"
        asked = FaultsByHand(_experiment(data, self.topology), self.topology)
        if asked.changes == self.changes:
            raise RefusedFaultError(f"{asked.latest.kind} {asked.latest.target} would change nothing")
        return asked

    @property
    def latest(self) -> Fault:
        """The fault that was asked for last."""
        return self.experiment.faults[-1]

    def until(self, duration_us: int) -> Experiment:
        """The experiment as it was in the end: with this duration, and the faults that began within it."""
        faults = tuple(fault for fault in self.experiment.faults if fault.at_us < duration_us)
        duration_us = max(duration_us, DURATION_US_MIN)
        return self.experiment.model_copy(update={"faults": faults, "duration_us": duration_us})

    def plan(self, plan: Plan, duration_us: int) -> Plan:
        """The run's plan as it was in the end."""
        experiment = self.until(duration_us)
        made = with_faults(plan, experiment.faults, self.topology, duration_us)
        return replace(made, duration_us=duration_us)


PLANNED_FAULTS = ("faults", "nemesis")
"""An experiment's fields that make things go wrong without being asked."""


def meaningless(*, with_faults: bool) -> tuple[str, ...]:
    """An experiment's fields that say nothing about one run, on this machine, to try things on."""
    return ("expect", "sweep", "repeat", "on", *(() if with_faults else PLANNED_FAULTS))


def open_ended(experiment: Experiment, faults: tuple[Fault, ...]) -> Experiment:
    """An experiment to try things on: with these faults, and no others by chance."""
    return experiment.model_copy(update={"faults": faults, "nemesis": None})


def _experiment(data: dict[str, Any], topology: Topology) -> Experiment:
    place = ("faults", len(data["faults"]) - 1)
    try:
        experiment = validated(Experiment, Document("", data, {}))
    except InputError as error:
        field = error.field.removeprefix(dotted(place)).strip(".")
        raise RefusedFaultError(": ".join(filter(None, (field, error.problem)))) from None
    for path, problem in problems(experiment, topology):
        if path[:2] == place:
            raise RefusedFaultError(problem)
    return experiment
