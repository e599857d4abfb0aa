"""Faults that a user injects during the run, in addition to those of its experiment. Pure.

An injected fault is treated as if it were in the experiment's file with this time: it is validated in the
same way, gets a name (its kind and a number), combines with other faults by the same rules
(`testbed.faults.timeline`) and is added to the plan, so that readers of the run find it like any other. A
later fault never changes the past.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from experiments.checks import problems
from experiments.faults.fault import ExperimentFault
from experiments.faults.kinds import KINDS
from experiments.faults.links import FOREVER_US
from experiments.model import DURATION_US_MIN, Experiment
from experiments.planned.changes import LinkChange, ProcessChange
from experiments.planned.plan import LinkPlan, Plan
from experiments.traffic import SECOND_US
from testbed.errors import TestbedError
from testbed.planning import all_changes, with_faults
from topologies.document import Document, dotted, validated
from topologies.errors import InputError
from topologies.model import Topology


class RefusedFaultError(TestbedError):
    """An injected fault is invalid, or would change nothing."""


@dataclass(frozen=True)
class InteractiveSchedule:
    """An experiment with all faults so far, and the resulting changes. links: the plan's."""

    experiment: Experiment
    topology: Topology
    links: tuple[LinkPlan, ...] = ()

    @cached_property
    def changes(self) -> tuple[LinkChange | ProcessChange, ...]:
        """Every change of links and processes, by time, as if the run never ended."""
        return all_changes(self.experiment.faults, self.topology, FOREVER_US, links=self.links)

    def with_fault(self, given: Mapping[str, Any], at_us: int) -> "InteractiveSchedule":
        """Return the schedule with one more fault, in the form of the file, at `at_us`.

        `at_us` must be later than all applied changes. Raises RefusedFaultError if the fault is invalid or
        changes nothing.
        """
        kind = next((name for name in KINDS if name in given), "fault")
        known = {fault.name for fault in self.experiment.faults}
        name = next(name for n in range(1, len(known) + 2) if (name := f"{kind}-{n}") not in known)
        data = self.experiment.to_json()
        data["faults"] = [*data.get("faults", ()), {"name": name, "at": f"{at_us}us", **given}]
        data["duration"] = f"{max(self.experiment.duration_us, at_us + 1)}us"
        asked = InteractiveSchedule(_experiment(data, self.topology), self.topology, self.links)
        if asked.changes == self.changes:
            raise RefusedFaultError(f"{asked.latest.kind} {asked.latest.target} would change nothing")
        return asked

    @property
    def latest(self) -> ExperimentFault:
        """The fault that was injected last."""
        return self.experiment.faults[-1]

    def until(self, duration_us: int) -> Experiment:
        """Return the experiment as it was at the end: with this duration, and all that began within it."""
        faults = tuple(fault for fault in self.experiment.faults if fault.at_us < duration_us)
        duration_us = max(duration_us, DURATION_US_MIN)
        traffic = tuple(
            entry if entry.end_us(duration_us) <= duration_us else entry.model_copy(update={"for_us": None})
            for entry in self.experiment.traffic
            if entry.at_us + SECOND_US <= duration_us
        )
        return self.experiment.model_copy(
            update={"faults": faults, "duration_us": duration_us, "traffic": traffic}
        )

    def plan(self, plan: Plan, duration_us: int) -> Plan:
        """Return the run's plan as it was at the end."""
        experiment = self.until(duration_us)
        made = with_faults(plan, experiment.faults, self.topology, duration_us)
        return replace(made, duration_us=duration_us)


PLANNED_FAULTS = ("faults", "nemesis", "arrivals", "departures")
"""The fields of an experiment that schedule faults."""


def ignored_fields(*, with_faults: bool) -> tuple[str, ...]:
    """Return the fields of an experiment that are meaningless for an interactive run on this machine."""
    return ("expect", "sweep", "repeat", "on", *(() if with_faults else PLANNED_FAULTS))


def open_ended(experiment: Experiment, faults: tuple[ExperimentFault, ...]) -> Experiment:
    """Return the experiment for an interactive run: with these faults, and no random ones."""
    return experiment.model_copy(update={"faults": faults, "nemesis": None, "arrivals": (), "departures": ()})


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
