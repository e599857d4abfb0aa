"""What clients of programs got and could not know again: payloads whose marker is missing, or of no stream.

A system that cuts, changes or wraps payloads would otherwise look like one that loses everything.
"""

from analysis.timelines.recovering.failover_events import log_records
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.rundir import RunDirectory

STRANGER = "not_an_event"
"""What `cutset_client` writes into its host's log, for the first few of them."""


def notes(run: RunDirectory, metadata: RunMetadata) -> list[str]:
    """Who got any, and how long the first was."""
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
    said = f", the first of {size} B" if isinstance(size, int) else ""
    return [f"{client}{more} got payloads that are no event of the run{said}: {STRANGER} in the log"]
