"""Where runs can be carried out, as whoever runs them sees it; and the nearest such place, this machine."""

from pathlib import Path
from typing import Protocol

from experiments.plan import Plan
from experiments.rundir import RunDirectory
from testbed.runner import start
from testbed.runner.start import Ended, Follow


class Place(Protocol):
    """This machine, virtual time, or machines of an inventory."""

    def fitted(self, plan: Plan) -> Plan:
        """The plan as it can be carried out here. Raises InputError if it cannot."""

    def check(self, out: Path, plan: Plan) -> None:
        """Make `out`, the folder of runs. Raises MachineError if it, or the place, is not up to the plan."""

    def carry_out(self, run: RunDirectory, follow: Follow) -> Ended:
        """Carry out the run whose plan stands in run.json.

        Raises MachineError or TestbedError if there is nothing to look at afterwards, KeyboardInterrupt when
        the user asked twice.
        """


class Local:
    """This machine: real processes in a sandbox of their own. See `Place`."""

    def fitted(self, plan: Plan) -> Plan:
        """Any plan."""
        return plan

    def check(self, out: Path, plan: Plan) -> None:
        """See `Place`: programs, and disk for the captures."""
        start.check_machine(out, plan)

    def carry_out(self, run: RunDirectory, follow: Follow) -> Ended:
        """See `Place`."""
        return start.carry_out(run, follow)
