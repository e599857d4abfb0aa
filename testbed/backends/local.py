"""This machine: real processes in a sandbox of their own."""

from pathlib import Path

from experiments.rundir import RunDirectory
from testbed.plan import Plan
from testbed.runner import start
from testbed.runner.start import Ended, Follow


class Local:
    """See `Place`."""

    def fitted(self, plan: Plan) -> Plan:
        """Any plan."""
        return plan

    def check(self, out: Path, plan: Plan) -> None:
        """See `Place`: programs, and disk for the captures."""
        start.check_machine(out, plan)

    def carry_out(self, run: RunDirectory, follow: Follow) -> Ended:
        """See `Place`."""
        return start.carry_out(run, follow)
