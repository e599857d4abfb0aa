"""The topology and the experiment of a hunt's case, for virtual time and for real processes."""

from experiments.hunting.case import HuntCase
from experiments.hunting.case_experiment import experiment_of
from experiments.model import Experiment
from topologies.loader import load_topology
from topologies.model import Topology

UNDER_WAY = "under-way"
"""Prefix of the folders of unfinished runs; a leftover folder has no owner."""


def experiment_and_topology(base: Experiment, case: HuntCase) -> tuple[Topology, Experiment]:
    """Return the topology and the experiment of a case. Raises InputError."""
    topology = load_topology(case.settings.get("topology", base.topology))
    return topology, experiment_of(base, case, topology)
