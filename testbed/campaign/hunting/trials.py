"""The interface for running a case of a hunt, in virtual time or on real processes."""

from typing import Any, Protocol

from experiments.hunting.case import HuntCase
from experiments.hunting.written import experiment_of
from experiments.model import Experiment
from topologies.loader import load_topology
from topologies.model import Topology

UNDER_WAY = "under-way"
"""Prefix of the folders of unfinished runs; a leftover folder has no owner."""


class Trials(Protocol):
    """Runs the cases of one experiment."""

    def tried(self, case: HuntCase, kept_us: tuple[int, int] | None, *, keep: bool = False) -> dict[str, Any]:
        """Run a case. kept_us: also return the messages of this range, in microseconds since time 0. keep:
        whether to keep the directory of a run that breaks something.

        Returns `violations` (as of the oracle), `figures` and `messages`; for a run on real processes also
        `valid`, whether the machine kept up, and `run`, the directory that stayed. Raises InputError and
        TestbedError for a case that cannot be run.
        """

    def confirmed(self, case: HuntCase) -> dict[str, Any]:
        """Run a case with the whole analysis; return its `verdict`, and `broken`, the missed expectations."""


def experiment_and_topology(base: Experiment, case: HuntCase) -> tuple[Topology, Experiment]:
    """Return the topology and the experiment of a case. Raises InputError."""
    topology = load_topology(case.settings.get("topology", base.topology))
    return topology, experiment_of(base, case, topology)
