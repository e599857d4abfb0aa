"""What it is to try a case of a hunt, wherever that is: in virtual time, or on real processes."""

from dataclasses import asdict
from random import Random
from typing import Any, Protocol

from experiments.declared import Trait
from experiments.hunting.case import Case
from experiments.hunting.lineage import Transfer, starving
from experiments.hunting.written import experiment_of
from experiments.model import Experiment
from experiments.plan import Plan
from experiments.plan_routes import hops
from topologies.loader import load_topology
from topologies.model import Topology

UNDER_WAY = "under-way"
"""How the folders of runs that are not over begin; one that is left over is nobody's."""
USUAL_US = 1_000_000
"""How long what keeps an event from a client goes on, where the system has no times of its own."""


class Trials(Protocol):
    """Runs the cases of one experiment."""

    def tried(self, case: Case, kept_us: tuple[int, int] | None, *, keep: bool = False) -> dict[str, Any]:
        """Run a case. kept_us: also tell the messages of that time, in microseconds since time 0. keep:
        whether the directory of a run that breaks something stays.

        Returns `violations` (as of the oracle), `figures`, `features` and when each first occurred,
        `starving` (`experiments.hunting.lineage`), `moments` (`experiments.hunting.case`), `messages`,
        `actions` (what it cost), and of a run on real processes `valid`, whether the machine kept up, and
        `run`, the directory that stayed. Raises InputError and TestbedError for a case that cannot be run.
        """

    def confirmed(self, case: Case) -> dict[str, Any]:
        """Run a case with the whole analysis: its `verdict`, and `broken`, the expectations that did not
        hold.
        """


def experiment_and_topology(base: Experiment, case: Case) -> tuple[Topology, Experiment]:
    """What a case's run is made from. Raises InputError."""
    topology = load_topology(case.settings.get("topology", base.topology))
    return topology, experiment_of(base, case, topology)


def rng_of(what: str, seed: int) -> Random:
    """What decides what is told of a run: the same each time."""
    return Random(f"{what} {seed}")  # noqa: S311  to be replayed, not to be kept secret


def starved(plan: Plan, seed: int, transfers: list[Transfer]) -> list[list[dict[str, Any]]]:
    """The disturbances that would have kept some deliveries of a run from coming, as JSON."""
    clients = [
        process.name for process in plan.processes if plan.declared.has(process.role, Trait.SUBSCRIBER)
    ]
    rng = rng_of("lineage", seed)
    times_us = [int(value) for name, value in plan.parameters.items() if name.endswith("_us") and value]
    found = starving(transfers, clients, hops(plan), rng, times_us or [USUAL_US])
    return [[asdict(each) for each in some] for some in found]
