"""The interface of a backend, which carries out runs; and the default one, a sandbox on this machine."""

from pathlib import Path
from typing import Protocol

from experiments.planned.plan import Plan
from experiments.records.rundir import RunDirectory
from testbed.links.abilities import with_links_that_can
from testbed.runner import run_control
from testbed.runner.run_control import Follow, RunResult


class Backend(Protocol):
    """Carries out runs: on this machine, in virtual time, or on the machines of an inventory."""

    def adapted(self, plan: Plan) -> Plan:
        """The plan as this backend can carry it out. Raises InputError if it cannot."""

    def check(self, out: Path, plan: Plan) -> None:
        """Create `out`, the folder of runs. Raises MachineError if that fails, or the backend lacks programs
        or disk.
        """

    def carry_out(self, run: RunDirectory, follow: Follow) -> RunResult:
        """Carry out the run whose plan is in run.json.

        Raises MachineError or TestbedError if the run left nothing to analyse, KeyboardInterrupt after a
        second Ctrl-C.
        """


class LocalBackend:
    """Real processes in a sandbox on this machine."""

    def adapted(self, plan: Plan) -> Plan:
        """See `Backend`: any plan, on links that can do what it says."""
        return with_links_that_can(plan)

    def check(self, out: Path, plan: Plan) -> None:
        """See `Backend`: programs, and disk for the captures."""
        run_control.check_machine(out, plan)

    def carry_out(self, run: RunDirectory, follow: Follow) -> RunResult:
        """See `Backend`."""
        return run_control.carry_out(run, follow)
