"""The nemesis' seeds one after the other until one breaks, on all processors: what
`tests.bench.simulated.hunt` holds a hunt against. Its arguments are an experiment and seconds.
"""

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from experiments.loader import load_experiment
from testbed.backends.in_memory import simulate_in_memory
from testbed.campaign.hunting.oracle import judge
from testbed.planning import make_plan
from topologies.loader import load_topology


def faults_that_break(name: str, seed: int) -> int | None:
    """How many faults a seed has, if its run breaks a promise."""
    experiment = load_experiment(name)
    plan = make_plan(experiment, load_topology(experiment.topology), seed=seed, links_kind="auto")
    described = {"experiment": experiment.drawn(seed).to_json(), "topology": {}}
    return len(plan.faults) if judge(simulate_in_memory(plan, described)).violations else None


def first_broken(name: str, budget_s: float) -> tuple[float | None, int | None]:
    """After how many seconds a seed broke, and how many faults it had."""
    began_s, seed = time.monotonic(), 0
    processors = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(processors) as pool:
        while time.monotonic() - began_s < budget_s:
            seeds = range(seed, seed + processors)
            seed += processors
            for faults in pool.map(faults_that_break, [name] * processors, seeds):
                if faults is not None:
                    return time.monotonic() - began_s, faults
    return None, None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(first_broken(sys.argv[1], float(sys.argv[2]))))
