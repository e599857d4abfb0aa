"""Runs of experiments in virtual time, for tests of their records or of their summaries."""

import re
from pathlib import Path
from typing import Any

from analysis.pipeline import analyze_here
from experiments.loader import read_experiment
from experiments.model import Experiment
from experiments.records.rundir import RunDirectory
from node.sim.sim_network import Build
from node.systems import build_machine
from testbed.backends.simulator import simulate
from testbed.campaign.one_run import ExperimentRunRequest
from testbed.runner.run_control import Follow, prepare
from topologies.loader import load_topology
from topologies.model import Topology

USUAL = {
    "name": "small",
    "topology": "two-regions",
    "system": "sprinkler",
    "roles": "{proxy: 1, driver: 1, client: 1}",
    "workload": "{event_size: 10B, rate: 100/s}",
    "captures": "none",
}
"""The fields of a small experiment."""


def experiment_in(folder: Path, text: str) -> Experiment:
    """Write an experiment's file and read it. text: see `written`."""
    return read_experiment(str(written(folder, text))).experiment


def written(folder: Path, text: str) -> Path:
    """Write an experiment's file. text: its fields; those of USUAL only if they differ."""
    usual = [f"{name}: {value}\n" for name, value in USUAL.items() if not re.search(rf"(?m)^{name}:", text)]
    file = folder / "experiment.yaml"
    file.write_text("".join(usual) + text)
    return file


def prepared(
    experiment: Experiment, folder: Path, *, seed: int = 1, topology: Topology | None = None
) -> RunDirectory:
    """Return the run's directory with its plan, before execution."""
    topology = topology or load_topology(experiment.topology)
    request = ExperimentRunRequest(experiment, topology, seed, "auto")
    return prepare(folder, request.plan(), request.described())


def simulated(
    experiment: Experiment,
    folder: Path,
    *,
    seed: int = 1,
    topology: Topology | None = None,
    build: Build = build_machine,
    follow: Follow = lambda _: None,
) -> RunDirectory:
    """Execute an experiment in virtual time."""
    run = prepared(experiment, folder, seed=seed, topology=topology)
    simulate(run, follow, build=build)
    return run


def summary_of(run: RunDirectory) -> dict[str, Any]:
    """Analyse a run in this process."""
    return analyze_here(run, progress=lambda _: None)


def missed(summary: dict[str, Any]) -> list[str]:
    """Return the expectations that did not hold."""
    return [each["text"] for each in summary["expectations"] if not each["held"]]
