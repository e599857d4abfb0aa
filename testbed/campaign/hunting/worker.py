"""One of a hunt's processes: runs cases that come on stdin, a JSON object a line, and says on stdout what
came of each, a line each. It ends with its input, and when it is killed nothing is left of it.

The first line is a `Setup`. Interrupts are the parent's matter: whoever reads the terminal ends the workers.
"""

import importlib
import json
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from experiments.declared import Trait
from experiments.hunting.case import Case, Disturbance, case_from_json
from experiments.hunting.lineage import Transfer, starving
from experiments.hunting.written import experiment_of
from experiments.model import Experiment
from experiments.plan import Plan
from experiments.plan_routes import hops
from testbed.backends.carried import Carried, Together
from testbed.backends.coverage import Coverage
from testbed.backends.in_memory import simulate_in_memory
from testbed.backends.simulator import simulate
from testbed.campaign.hunting.oracle import judge
from testbed.errors import TestbedError
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from topologies.errors import InputError
from topologies.loader import load_topology

USUAL_US = 1_000_000
"""How long what keeps an event from a client goes on, where the system has no times of its own."""
DEFAULT_BUILD = "node.systems:build_machine"


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup = json.loads(sys.stdin.readline())
    for module in setup["modules"]:
        from experiments.declared import add_module

        add_module(Path(module))
    server = Server(Experiment.model_validate(setup["experiment"]), setup["build"] or DEFAULT_BUILD)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(server.answer(json.loads(line))) + "\n")
        sys.stdout.flush()


class Server:
    """Answers requests about cases of one experiment. build: a reference to what makes the machines."""

    def __init__(self, base: Experiment, build: str) -> None:
        self._base = base
        module, _, name = build.partition(":")
        self._build = getattr(importlib.import_module(module), name)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What came of a case. request: `case`, and `do`: try, show or confirm."""
        case = case_from_json(request["case"])
        try:
            if request["do"] == "confirm":
                return self._confirmed(case)
            return self._tried(case, request.get("kept_us"))
        except (InputError, TestbedError) as error:
            return {"refused": str(error)}

    def _tried(self, case: Case, kept_us: tuple[int, int] | None) -> dict[str, Any]:
        """Run a case in memory. kept_us: also tell the messages of that time."""
        topology, experiment = self._experiment(case)
        plan = make_plan(experiment, topology, seed=case.seed, links_kind="auto")
        spans = [(each.kind, each.at_us, each.end_us) for each in case.disturbances]
        coverage = Coverage.of(plan.system, spans, kept_us)
        carried = Carried.of(plan.system)
        described = {"experiment": experiment.to_json(), "topology": {}}
        run = simulate_in_memory(plan, described, build=self._build, watcher=Together(coverage, carried))
        judged = judge(run)
        simulation = run.record.simulation
        return {
            "violations": [asdict(each) for each in judged.violations],
            "figures": judged.figures,
            "features": coverage.features(),
            "starving": [
                [asdict(each) for each in some] for some in self._starving(plan, case, carried.transfers)
            ],
            "messages": [asdict(each) for each in coverage.messages],
            "wall_s": simulation.wall_s if simulation else 0.0,
            "actions": simulation.actions if simulation else 0,
            "virtual_s": simulation.virtual_s if simulation else 0.0,
        }

    def _starving(self, plan: Plan, case: Case, transfers: list[Transfer]) -> list[tuple[Disturbance, ...]]:
        clients = [
            process.name for process in plan.processes if plan.declared.has(process.role, Trait.SUBSCRIBER)
        ]
        rng = Random(f"lineage {case.seed}")  # noqa: S311  to be replayed, not to be kept secret
        times_us = [int(value) for name, value in plan.parameters.items() if name.endswith("_us") and value]
        return starving(transfers, clients, hops(plan), rng, times_us or [USUAL_US])

    def _confirmed(self, case: Case) -> dict[str, Any]:
        """Run a case as `cutset run --on simulator` does, with all of the analysis."""
        from analysis.pipeline import analyze_here
        from testbed.errors import TestbedError

        topology, experiment = self._experiment(case)
        plan = make_plan(experiment, topology, seed=case.seed, links_kind="auto")
        described = {"experiment": experiment.model_dump(mode="json"), "topology": {}}
        with tempfile.TemporaryDirectory(prefix="cutset-hunt-") as folder:
            run = prepare(Path(folder), plan, described)
            try:
                simulate(run, lambda _: None, build=self._build)
            except TestbedError as error:
                return {"verdict": "crashed", "broken": [str(error)]}
            summary = analyze_here(run, progress=lambda _: None)
        broken = [each["text"] for each in summary["expectations"] if not each["held"]]
        return {"verdict": summary["verdict"], "broken": broken}

    def _experiment(self, case: Case) -> Any:
        topology = load_topology(case.settings.get("topology", self._base.topology))
        return topology, experiment_of(self._base, case, topology)


if __name__ == "__main__":
    main()
