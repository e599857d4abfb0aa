"""Unrecognised payloads at clients of programs: their marker is missing, or names no stream of the run.

A system that cuts, changes or wraps payloads would otherwise seem to lose everything.
"""

from analysis.timelines.log_records import log_records
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.rundir import RunDirectory

STRANGER = "not_an_event"
"""The log event that `cutset_client` writes for the first few of them."""


def notes(run: RunDirectory, metadata: RunMetadata) -> list[str]:
    """Return a note with the clients concerned, and the size of the first payload."""
    if metadata.declared.marked is None:
        return []
    firsts = {
        client: record
        for client in metadata.clients
        if (record := next(log_records(run.log(client), (STRANGER,)), None)) is not None
    }
    if not firsts:
        return []
    client, first = next(iter(firsts.items()))
    size, others = first.get("bytes"), len(firsts) - 1
    more = f" and {others} more" if others else ""
    first_size = f", the first of {size} B" if isinstance(size, int) else ""
    return [f"{client}{more} got payloads that are not events of the run{first_size}: {STRANGER} in the log"]
