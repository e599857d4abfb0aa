"""The processor time of a short simulated run: three regions, 25 s of virtual time, 500 events/s in each, and
random faults. A search for fault schedules makes many runs in one process, so imports are not counted.
Messages determine the cost: the experiment's publishers close a batch every 25 ms, those with Sprinkler's
defaults every 50 ms. The cost per message is measured on a longer run: twelve regions (Abilene), 200 events/s
in each, 20 s, two cuts; an earlier run counts the messages.
"""

import tempfile
import time
from pathlib import Path

from analysis.pipeline import analyze_here
from experiments.loader import load_experiment
from node.core import machine as m
from node.core.message_layout import Codec
from node.sim.process import Node
from testbed.backends.in_memory import simulate_in_memory
from testbed.backends.message_watcher import MessageWatcher
from testbed.backends.simulator import Simulator, simulate
from testbed.campaign.hunting.oracle import judge
from testbed.campaign.one_run import ExperimentRunRequest, prepare
from testbed.planning import make_plan
from tests.bench.rows import Row, row
from topologies.loader import load_topology

EXPERIMENT = "nemesis"
ABILENE = str(Path(__file__).parents[1] / "abilene-cuts.yaml")
AS_WRITTEN = ("nemesis.vary=null",)  # the settings of the file in every run
PLAIN = (*AS_WRITTEN, "parameters={}")  # and Sprinkler's own
SEEDS = range(1, 4)
PROCESSORS = 2  # on which the runs of a second are asked


def run_once(out: Path, seed: int) -> tuple[float, float, float]:
    """Seconds of a processor for the plan, the simulation and the analysis of a run."""
    began_s = time.process_time()
    experiment = load_experiment(EXPERIMENT, AS_WRITTEN)
    request = ExperimentRunRequest.for_experiment(experiment, seed)
    run = prepare(request, Simulator(), out)
    planned_s = time.process_time()
    simulate(run, lambda message: None)
    simulated_s = time.process_time()
    analyze_here(run, progress=lambda text: None)
    return planned_s - began_s, simulated_s - planned_s, time.process_time() - simulated_s


def hunted_s(overrides: tuple[str, ...], seed: int) -> float:
    """Seconds of a processor for a run in memory that is judged, as a hunt makes them."""
    experiment = load_experiment(EXPERIMENT, overrides)
    plan = make_plan(experiment, load_topology(experiment.topology), seed=seed, links_kind="auto")
    began_s = time.process_time()
    judge(simulate_in_memory(plan, {"experiment": experiment.to_json(), "topology": {}}))
    return time.process_time() - began_s


class MessageCount(MessageWatcher):
    """Counts the messages that processes hand to connections."""

    def __init__(self) -> None:
        super().__init__(Codec([]))
        self.count = 0

    def sent(self, source: Node, target: Node, effect: m.Send) -> None:
        """See `MessageWatcher`."""
        self.count += len(effect.messages)


def message_us() -> float:
    """Microseconds of a processor for each message of the Abilene run."""
    experiment = load_experiment(ABILENE)
    plan = make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="auto")
    described = {"experiment": experiment.to_json(), "topology": {}}
    count = MessageCount()
    simulate_in_memory(plan, described, watcher=count)
    began_s = time.process_time()
    simulate_in_memory(plan, described)
    return (time.process_time() - began_s) * 1e6 / count.count


def measure() -> list[Row]:
    """Rows for `make bench`."""
    with tempfile.TemporaryDirectory() as folder:
        run_once(Path(folder), SEEDS.start)  # imports
        taken = [run_once(Path(folder), seed) for seed in SEEDS]
    plan_s, simulation_s, analysis_s = (sum(part) / len(taken) for part in zip(*taken, strict=True))
    run_s = plan_s + simulation_s + analysis_s
    hunted = {
        name: sum(hunted_s(overrides, seed) for seed in SEEDS) / len(SEEDS)
        for name, overrides in (("as written", AS_WRITTEN), ("with Sprinkler's own settings", PLAIN))
    }
    return [
        row("plan of a run", plan_s, "s"),
        row("simulation of a run", simulation_s, "s"),
        row("analysis of a run", analysis_s, "s"),
        row("processor time of a run", run_s, "s", 1.0),
        row(f"simulated runs on {PROCESSORS} processors", PROCESSORS / run_s, "1/s", 2.0),
        *(
            row(f"hunted runs on {PROCESSORS} processors, {name}", PROCESSORS / taken_s, "1/s", 3.0)
            for name, taken_s in hunted.items()
        ),
        row("a message, 12 regions (Abilene)", message_us(), "µs", 12.0),
    ]
