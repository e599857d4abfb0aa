"""Short runs in virtual time without faults, one per system."""

import sys
from collections.abc import Sequence
from pathlib import Path

from analysis.pipeline import analyze_here
from experiments.loader import load_experiment
from testbed.backends.simulator import simulate
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from topologies.loader import load_topology

SEED = 1


def broken_in_copy(copy: Path, files: Sequence[str], system: str, folder: Path) -> list[str]:
    """Run a system with changed modules of `node` and return the expectations that failed.

    Call it in a process of its own. copy: folder of the changed packages. files: changed files, which this
    process must not have imported.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "node":
            assert f"{name.replace('.', '/')}.py" not in files, f"{name} is imported already"
            if hasattr(module, "__path__"):
                module.__path__ = [str(copy.joinpath(*name.split(".")))]
    broken = broken_expectations(system, folder)
    for file in files:
        used = sys.modules[file.removesuffix(".py").replace("/", ".")].__file__
        assert used == str(copy / file), f"{used} ran instead of the copy"
    return broken


def broken_expectations(system: str, folder: Path) -> list[str]:
    """Run a system for five seconds in `folder` and return the expectations that failed."""
    experiment = load_experiment(str(Path(__file__).with_name(f"{system}.yaml")))
    plan = make_plan(experiment, load_topology(experiment.topology), seed=SEED, links_kind="auto")
    directory = prepare(folder, plan, {"experiment": experiment.model_dump(mode="json"), "topology": {}})
    simulate(directory, lambda message: None)
    summary = analyze_here(directory, progress=lambda text: None)
    assert summary["events"]["delivered"] > 0, "a run without deliveries"
    return [each["text"] for each in summary["expectations"] if not each["held"]]
