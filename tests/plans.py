"""Plans of experiments, for tests."""

from experiments.loader import load_experiment
from experiments.model import Experiment
from experiments.planned.plan import Plan
from testbed.planning import make_plan
from topologies.loader import load_topology


def plan_of(experiment: Experiment, *, seed: int | None = 1, links: str = "auto") -> Plan:
    """Return an experiment's plan on its own topology."""
    return make_plan(experiment, load_topology(experiment.topology), seed=seed, links_kind=links)


def plan_named(name: str, *overrides: str, seed: int | None = 1, links: str = "auto") -> Plan:
    """Return the plan of the experiment of this name or file."""
    return plan_of(load_experiment(name, overrides), seed=seed, links=links)
