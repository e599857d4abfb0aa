"""The interface for running a case of a hunt, in virtual time or on real processes."""

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
"""The prefix of folders of unfinished runs; a leftover one belongs to no process."""
USUAL_US = 1_000_000
"""How long a disturbance lasts that keeps an event from a client, if the system has no time parameters."""


class Trials(Protocol):
    """Runs the cases of one experiment."""

    def tried(self, case: Case, kept_us: tuple[int, int] | None, *, keep: bool = False) -> dict[str, Any]:
        """Run a case. kept_us: also return the messages of this range, in microseconds since time 0. keep:
        whether to keep the directory of a run that breaks something.

        Returns `violations` (of the oracle), `figures`, `features` and when each first occurred, `starving`
        (`experiments.hunting.lineage`), `moments` (`experiments.hunting.case`), `messages`, `actions` (the
        cost), and for a run on real processes `valid`, whether the machine kept up, and `run`, the kept
        directory. Raises InputError and TestbedError if the case cannot be run.
        """

    def confirmed(self, case: Case) -> dict[str, Any]:
        """Run a case with the whole analysis; return its `verdict`, and `broken`, the missed expectations."""


def experiment_and_topology(base: Experiment, case: Case) -> tuple[Topology, Experiment]:
    """Return the topology and the experiment of a case. Raises InputError."""
    topology = load_topology(case.settings.get("topology", base.topology))
    return topology, experiment_of(base, case, topology)


def rng_of(what: str, seed: int) -> Random:
    """Return the random source that selects what is reported of a run, reproducible by its seed."""
    return Random(f"{what} {seed}")  # noqa: S311  reproducible, not secret


def starved(plan: Plan, seed: int, transfers: list[Transfer]) -> list[list[dict[str, Any]]]:
    """Return the disturbances that would have prevented some deliveries of a run, as JSON."""
    clients = [
        process.name for process in plan.processes if plan.declared.has(process.role, Trait.SUBSCRIBER)
    ]
    rng = rng_of("lineage", seed)
    times_us = [int(value) for name, value in plan.parameters.items() if name.endswith("_us") and value]
    found = starving(transfers, clients, hops(plan), rng, times_us or [USUAL_US])
    return [[asdict(each) for each in some] for some in found]
