"""The interface of a backend, which executes runs; and the default backend, a sandbox on this machine."""

from pathlib import Path
from typing import Protocol

from experiments.planned.plan import Plan
from experiments.records.rundir import RunDirectory
from testbed.links.abilities import with_links_that_can
from testbed.runner import run_control
from testbed.runner.run_control import Follow, RunResult


class Backend(Protocol):
    """Executes runs: on this machine, in virtual time, or on the machines of an inventory."""

    def adapted(self, plan: Plan) -> Plan:
        """Return the plan as this backend can execute it. Raises InputError if it cannot."""

    def check(self, out: Path, plan: Plan) -> None:
        """Create `out`, the folder of runs.

        Raises MachineError if that fails, or if the backend lacks programs or disk space.
        """

    def execute(self, run: RunDirectory, follow: Follow) -> RunResult:
        """Execute the run whose plan is in run.json.

        Raises MachineError or TestbedError if the run left nothing to analyse, KeyboardInterrupt after a
        second Ctrl-C.
        """


class LocalBackend:
    """Real processes in a sandbox on this machine."""

    def adapted(self, plan: Plan) -> Plan:
        """Return any plan, with emulators that support its links; see `Backend`."""
        return with_links_that_can(plan)

    def check(self, out: Path, plan: Plan) -> None:
        """Check programs, and disk space for the captures; see `Backend`."""
        run_control.check_machine(out, plan)

    def execute(self, run: RunDirectory, follow: Follow) -> RunResult:
        """Execute a run; see `Backend`."""
        return run_control.execute(run, follow)
