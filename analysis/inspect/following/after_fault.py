"""Finds the n-th event that was published in a stream after a fault took effect, from the table of events."""

import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.errors import AnalysisError
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError


def event_after(run: RunDirectory, stream: int, fault: str, nth: int, metadata: RunMetadata) -> int:
    """Return the sequence number of the `nth` event (from 1) published after the fault.

    Raises InputError if the run has no such fault or it never took effect, AnalysisError if fewer events
    follow it.
    """
    applied = {each.name: each.applied_ns for each in metadata.faults}
    if fault not in applied:
        known = ", ".join(sorted(applied)) or "none"
        raise InputError("--after", None, "", f"{fault} is not a fault of this run: known are {known}")
    if applied[fault] is None:
        raise InputError("--after", None, "", f"{fault} never took effect in this run")
    columns = ["t_ns", "first_seq", "count"]
    chosen = (pc.field("stream") == stream) & (pc.field("kind") == "published")
    table = pq.read_table(
        run.table("events"), columns=columns, filters=chosen & (pc.field("t_ns") >= applied[fault])
    )
    left = nth
    for batch in table.sort_by([("t_ns", "ascending"), ("first_seq", "ascending")]).to_pylist():
        if left <= batch["count"]:
            return int(batch["first_seq"]) + left - 1
        left -= batch["count"]
    raise AnalysisError(
        f"{nth - left} events of stream {stream} were published after {fault}: no event +{nth}"
    )
