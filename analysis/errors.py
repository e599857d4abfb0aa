"""Errors of the analysis, each one line for the CLI: the failed action, its input, and what to do.

All commands report a run that is not analysed, or has nothing to analyse, through the checks below.
"""

import shlex
from typing import NoReturn

from experiments.records.rundir import RunDirectory
from node.systems import codec_of
from topologies.errors import InputError


class AnalysisError(Exception):
    """The analysis cannot continue with its input."""


class CaptureError(AnalysisError):
    """A capture file cannot be used at all: it is missing, unreadable, or not a capture."""


def check_measured(run: RunDirectory) -> None:
    """Check that the run measured something. Raises InputError if it ended before time 0."""
    record = run.read_run()
    if record.times.zero_ns is None:
        ended = f"it ended before its nodes published anything (phase: {record.phase})"
        problem = f"holds nothing to analyse: {ended}"
        raise InputError(str(run.path), None, "", problem)


def check_transfers(run: RunDirectory) -> None:
    """Check that the run has a table of transfers. Raises InputError if not."""
    if not run.table("transfers").is_dir():
        raise_not_analysed(run)


def check_packets(run: RunDirectory) -> None:
    """Check that the run has packets. Raises InputError for a run in virtual time: it has only messages."""
    if run.read_run().simulated:
        problem = "was simulated and has no packets: the same experiment with `--on local` captures them"
        raise InputError(str(run.path), None, "", problem)


def check_messages(run: RunDirectory) -> None:
    """Check that the messages of the run's system can be decoded. Raises InputError if not."""
    plan = run.read_run().plan
    marked, why = plan.declared.marked, ""
    if plan.declared.shows_events:
        from analysis.capture.unread import unread  # noqa: PLC0415 - quick to import without

        why = unread(run)
    if why or (not plan.declared.shows_events and codec_of(plan.system) is None):
        why = f" ({why or marked.why})" if marked else ""
        instead = "`cutset packets --pcap` shows its packets"
        problem = f"the messages of {plan.system} are not known here{why}; {instead}"
        raise InputError(str(run.path), None, "", problem)


def raise_not_analysed(run: RunDirectory) -> NoReturn:
    """Raise InputError: the run is not analysed, or has nothing to analyse."""
    check_measured(run)
    command = shlex.join(["cutset", "analyze", str(run.path)])
    raise InputError(str(run.path), None, "", f"is not analysed yet: run `{command}`")
