"""Selects the figures of a run's timelines for its summary, and writes the timelines as tables."""

from collections.abc import Iterator

import pyarrow as pa

from analysis.capture.clocks import run_clocks as clock_notes
from analysis.capture.clocks.clocks_file import read_machines
from analysis.run_case import AnalysisCase, damaged, decoding
from analysis.timelines import latency, throughput
from analysis.timelines.agreement import compare, reset_hosts, unfit_hosts
from analysis.timelines.delivery import strangers
from analysis.timelines.delivery.expected import by_topic
from analysis.timelines.links import tcp_outages, traffic, wan
from analysis.timelines.links.link_causes import with_causes
from analysis.timelines.recovering import convergence, failover_events, recovery_table, stalled
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.run_window import notes as outside_notes
from analysis.timelines.schemas import FIDELITY
from analysis.timelines.summary import RunFindings
from analysis.timelines.tasks.results import write

Results = dict[str, pa.Table]
READY = ("deliveries", "publishers", "convergence", "confirmations", "selectivity", "tcp_outages")
"""Results of tasks that are timelines already."""

NO_LINK_CAPTURES = "there are no captures of links: link behaviour was not measured"
NO_HOST_CAPTURES = "there are no captures of hosts: events come from the records of clients and publishers"
NOT_DECODED = (
    "the messages of {} are not known here{}: events come from the records of clients and publishers"
)
FROM_ACKNOWLEDGEMENT = (
    "latency counts from the publisher's record: no server recorded when it accepted events"
)
NO_RECORDS = "the nodes left no records of deliveries: events could not be counted"


def findings_of(case: AnalysisCase, results: Results) -> RunFindings:
    """Write the timelines as tables, and return the findings for the summary.

    results: the results of all tasks, by table name.
    """
    run, metadata = case.run, case.metadata
    deliveries = results["deliveries"] if case.recorded else None
    asked = failover_events.from_subscriptions(results["subscriptions"], metadata)
    recovery = recovery_table.table(results["pairs"], [*asked, *case.logged], deliveries, metadata)
    links = with_causes(results["fidelity"].to_pylist(), case.record, metadata)
    others = results["traffic"] if case.links and metadata.traffic else None
    reports = traffic.read_reports(run, metadata)
    timelines = _timelines(case, results, others) | {
        "recovery": recovery,
        "fidelity": pa.Table.from_pylist(links, schema=FIDELITY),
    }
    for name, table in timelines.items():
        write(table, run.table(name))
    figures, reasons = recovery_table.headline(recovery, metadata)
    machines = read_machines(run)
    incomplete = damaged(case) if case.hosts else {}
    unfit = unfit_hosts(case.record, metadata, incomplete)
    comparable = case.decoded and case.recorded
    return RunFindings(
        deliveries=deliveries,
        publishers=results["publishers"],
        confirmations=results["confirmations"],
        selectivity=results["selectivity"],
        measured=results["measured"].to_pylist(),
        latency=latency.headline(results["samples"])
        | latency.phases(results["samples"], metadata)
        | latency.error_bounds(timelines["latency"]),
        recovery=figures,
        wan=wan.headline(timelines["wan"], results["wire"] if case.links else None),
        convergence=convergence.headline(results["convergence"], case.logged, metadata)
        | {
            "tcp_retry_s": tcp_outages.retry_s(
                results["tcp_outages"], metadata.seconds(metadata.last_change_ns)
            )
        },
        silent=stalled.between_regions(results["convergence"], metadata),
        fidelity=links,
        routes=recovery_table.routes(recovery),
        agreement=compare(
            results["coverage"], results["deliveries"], metadata, unfit, reset_hosts(decoding(case))
        )
        if comparable
        else None,
        damaged=incomplete,
        notes=(
            *_on_stalled(case, results["convergence"]),
            *_on_what_there_is(case),
            *traffic.notes(reports),
            *_on_times(case, results),
            *strangers.notes(run, metadata),
            *clock_notes.notes(machines, metadata.zero_ns),
            *reasons,
        ),
        clocks=clock_notes.summary(machines),
        unknown_clocks=tuple(clock_notes.problems(machines)),
        traffic=traffic.headline(reports, others, metadata),
    )


def _timelines(case: AnalysisCase, results: Results, others: pa.Table | None) -> Results:
    """Return the tables that follow from the tasks' results alone. others: traffic that is not the system's
    own.
    """
    metadata = case.metadata
    followed = results["followed"] if by_topic(metadata) and case.recorded else None
    wire = results["wire"] if case.links else None
    return {
        "throughput": throughput.table(results["arrivals"], wire, metadata, followed, others),
        "latency": latency.table(results["samples"], metadata),
        "wan": wan.table(results["wan_messages"], results["wan_copies"]),
        "chains": failover_events.chains(case.logged, metadata),
        **{name: results[name] for name in READY},
        **({"traffic": results["traffic"]} if metadata.traffic else {}),
    }


def _on_what_there_is(case: AnalysisCase) -> Iterator[str]:
    """Yield notes on sources that are missing."""
    if not case.recorded:
        yield NO_RECORDS
    if not case.links:
        yield NO_LINK_CAPTURES
    if not case.hosts:
        yield NO_HOST_CAPTURES
    elif not case.decoded:
        yield _not_decoded(case.metadata)
    if (not case.decoded or case.metadata.by_host) and not case.taken:
        yield FROM_ACKNOWLEDGEMENT


def _on_times(case: AnalysisCase, results: Results) -> Iterator[str]:
    """Yield notes on times, if the run has any."""
    metadata = case.metadata
    if metadata.window.problem:
        return
    yield from latency.notes(results["samples"], results["untimed"], metadata)
    yield from convergence.notes(results["convergence"])
    yield from outside_notes(results["outside"], metadata.window)


def _on_stalled(case: AnalysisCase, rows: pa.Table) -> Iterator[str]:
    events = case.run.table("events") if case.decoded else None
    hosts = stalled.captured_hosts(case.record.plan) if case.hosts else {}
    return stalled.notes(rows, case.run.table("packets"), events, hosts, case.metadata)


def _not_decoded(metadata: RunMetadata) -> str:
    declared = metadata.declared
    return NOT_DECODED.format(declared.name, f" ({declared.marked.why})" if declared.marked else "")
