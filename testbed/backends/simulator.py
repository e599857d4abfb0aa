"""Execution of a plan in virtual time, which leaves a run directory like that of a real run.

The nodes' own state machines run in `node.sim`, over the plan's links and with its faults. There are no
captures and no probes. The result does not depend on this machine: the same plan gives the same deliveries,
logs and times. Times begin at a fixed epoch (`simulated_files`). The phases and the messages to the follower
are those of a real run (`testbed.execution.phases`).

Not modelled: what `node.sim` does not model (processors, congestion control, queues that overflow), and
jitter and losses within a region.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.faults.kinds import kind_named
from experiments.planned.plan import Plan
from experiments.records.run_record import Outcome, RunRecord
from experiments.records.rundir import RunDirectory
from node.core.errors import NodeFailureError
from node.sim.sim_network import Build
from node.systems import build_machine
from testbed.backends.simulated_files import Files
from testbed.backends.virtual_world import VirtualWorld
from testbed.errors import TestbedError
from testbed.execution.record import RunRecordWriter
from testbed.interrupts import noted_interrupts
from testbed.links.abilities import check_virtual
from testbed.runner.run_control import Follow, RunResult
from topologies.errors import InputError

YOUNG_OBJECTS = 500_000  # allocations before Python looks for cycles: messages are many, cycles few


def simulate(run: RunDirectory, follow: Follow, *, build: Build = build_machine) -> RunRecord:
    """Execute the run whose plan is in run.json, report its progress to the follower, and return its record.

    build: creates the nodes' machines; tests pass broken ones to check that a run reveals them. Raises
    TestbedError if the run cannot start or a machine raises, KeyboardInterrupt when the user interrupts it.
    The run's directory then has the results so far, with that outcome.
    """
    record = RunRecordWriter(run, follow)
    try:
        with infrequent_collections(), noted_interrupts() as interrupts:
            VirtualWorld(record.content.plan, record, Files(run), build, interrupts).execute()
    except NodeFailureError as error:
        record.note(outcome=Outcome.CRASHED)
        record.problem(str(error))
        record.save()
        raise TestbedError(f"{error} (the run: {run.path})") from error
    except BaseException as error:
        by_user = isinstance(error, KeyboardInterrupt)
        record.note(outcome=Outcome.INTERRUPTED if by_user else Outcome.CRASHED)
        record.problem(
            "stopped by the user before its time" if by_user else f"{type(error).__name__}: {error}"
        )
        record.save()
        raise
    else:
        return record.content
    finally:
        record.close()


class Simulator:
    """The backend for virtual time."""

    def adapted(self, plan: Plan) -> Plan:
        """Return any plan of state machines, unchanged; see `Backend`."""
        for field, is_used, problem in (
            ("traffic", plan.traffic, "needs real packets, which virtual time does not have"),
            ("system", plan.programs, f"{plan.system} is a system of programs, which run on real processes"),
            ("topology.routing", plan.routing, "routes in virtual time are fixed"),
            *(
                (f"faults.{each.name}", reason, reason)
                for each in plan.faults
                if (reason := kind_named(each.kind).only_real)
            ),
        ):
            if is_used:
                raise InputError(plan.experiment, None, field, f"{problem}: use --on local")
        check_virtual(plan)
        return plan

    def check(self, out: Path, plan: Plan) -> None:
        """Check nothing: there are no captures and no programs; see `Backend`."""

    def execute(self, run: RunDirectory, follow: Follow) -> RunResult:
        """Execute a run; see `Backend`."""
        return RunResult(simulate(run, follow), by_user=False)


@contextmanager
def infrequent_collections() -> Iterator[None]:
    """Make garbage collection rare: millions of messages are created without forming a cycle.

    Objects that a process with many runs has frozen itself stay frozen: scanning them for every run would
    cost a short run a fifth of its time.
    """
    before = gc.get_threshold()
    freezes = not gc.get_freeze_count()
    gc.collect()
    if freezes:
        gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if freezes:
            gc.unfreeze()
