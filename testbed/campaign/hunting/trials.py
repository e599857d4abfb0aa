"""Cases of a hunt as runs. In virtual time they are in memory, deterministic, and as fast as the processor.

For cases on real processes see `on_processes`.
"""

import importlib
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.files.scratch import scratch
from experiments.hunting.case import HuntCase
from experiments.hunting.case_experiment import experiment_of
from experiments.model import Experiment
from testbed.backends.in_memory import simulate_in_memory
from testbed.backends.message_watcher import MessageWatcher
from testbed.backends.simulator import simulate
from testbed.campaign.hunting.agreement import unshared
from testbed.campaign.hunting.oracle import judge
from testbed.campaign.one_run import ExperimentRunRequest
from testbed.errors import TestbedError
from testbed.runner.run_control import prepare
from topologies.loader import load_topology


def case_request(base: Experiment, case: HuntCase) -> ExperimentRunRequest:
    """Return the inputs of a case's run. Raises InputError."""
    topology = load_topology(case.settings.get("topology", base.topology))
    return ExperimentRunRequest(experiment_of(base, case, topology), topology, case.seed, "auto")


class VirtualTimeTrials:
    """Runs cases of one experiment. build: a reference to the function that makes the machines."""

    def __init__(self, base: Experiment, build: str) -> None:
        self._base = base
        module, _, name = build.partition(":")
        self._build = getattr(importlib.import_module(module), name)

    def tried(
        self, case: HuntCase, kept_us: tuple[int, int] | None = None, *, keep: bool = False
    ) -> dict[str, Any]:
        """Run a case in memory. Raises InputError and TestbedError if it cannot be run.

        kept_us: also return the messages of this range, in microseconds since time 0. keep: has no effect; on
        real processes the directory of a run that broke something is kept. Returns `violations` (as of the
        oracle), `figures` and `messages`; on real processes also `valid`, whether the machine kept up, and
        `run`, the directory.
        """
        request = case_request(self._base, case)
        plan = request.plan()
        watcher = MessageWatcher.for_system(plan.system, kept_us)
        described = {"experiment": request.experiment.to_json(), "topology": {}}
        run = simulate_in_memory(plan, described, build=self._build, watcher=watcher)
        never = [change.fault for change, applied in run.record.changes_applied if applied.applied_ns is None]
        has_failed = run.failure is not None or any(process.died for process in run.record.processes)
        if never and not has_failed:  # for example a restart before the process left
            raise TestbedError(f"{never[0]} could not be applied")
        if run.overload is not None and not has_failed:
            raise TestbedError(run.overload)
        judged = judge(run)
        violations = (*judged.violations, *unshared(run, case, request.experiment))
        return {
            "violations": [asdict(each) for each in violations],
            "figures": judged.figures,
            "messages": [asdict(each) for each in watcher.messages],
        }

    def confirmed(self, case: HuntCase) -> dict[str, Any]:
        """Run a case like `cutset run --on simulator`, with the whole analysis; return its `verdict`."""
        from analysis.pipeline import analyze_here

        request = case_request(self._base, case)
        with scratch("cutset-hunt-", Path(tempfile.gettempdir())) as folder:
            run = prepare(folder, request.plan(), request.described())
            try:
                simulate(run, lambda _: None, build=self._build)
            except TestbedError:
                return {"verdict": "crashed"}
            return {"verdict": analyze_here(run, progress=lambda _: None)["verdict"]}
