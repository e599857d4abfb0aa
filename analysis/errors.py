"""The analysis' errors: what was being done, with which input, and what to do, in one line for the CLI to
print.

That a run was not analysed, or has nothing to analyse, is said the same by every command.
"""

import shlex
from typing import NoReturn

from experiments.records.rundir import RunDirectory
from node.systems import codec_of
from topologies.errors import InputError


class AnalysisError(Exception):
    """The analysis cannot go on with what it was given."""


class CaptureError(AnalysisError):
    """A capture file cannot be used at all: missing, unreadable, or no capture."""


def check_measured(run: RunDirectory) -> None:
    """Raises InputError if the run ended before time 0, so that nothing was measured."""
    record = run.read_run()
    if record.times.zero_ns is None:
        ended = f"it ended before its nodes published anything (phase: {record.phase})"
        problem = f"holds nothing to analyse: {ended}"
        raise InputError(str(run.path), None, "", problem)


def check_transfers(run: RunDirectory) -> None:
    """Raises InputError if the run has no table of transfers."""
    if not run.table("transfers").is_dir():
        refuse(run)


def check_packets(run: RunDirectory) -> None:
    """Raises InputError if the run was made in virtual time, which has messages but no packets."""
    if run.read_run().simulated:
        problem = "was simulated and has no packets: the same experiment with `--on local` captures them"
        raise InputError(str(run.path), None, "", problem)


def check_messages(run: RunDirectory) -> None:
    """Raises InputError if the messages of the run's system are not known here, as those of programs."""
    plan = run.read_run().plan
    marked, why = plan.declared.marked, ""
    if plan.declared.logs_keys:
        from analysis.capture.tls.unread import unread  # noqa: PLC0415 - quick to import without

        why = unread(run)
    if why or (not plan.declared.shows_events and codec_of(plan.system) is None):
        why = f" ({why or marked.why})" if marked else ""
        instead = "`cutset packets --pcap` gives its packets"
        problem = f"the messages of {plan.system} are not known here{why}; {instead}"
        raise InputError(str(run.path), None, "", problem)


def refuse(run: RunDirectory) -> NoReturn:
    """Raises InputError: the run lacks what its analysis makes."""
    check_measured(run)
    command = shlex.join(["cutset", "analyze", str(run.path)])
    raise InputError(str(run.path), None, "", f"is not analysed yet: `{command}` does it")
