"""The analysis of a run, whole: captures to packets and messages, to events, to timelines, to summary.json.

Reads the run directory and nothing else, and may be run again at any time with the same result: tables are
written beside their place and moved there when whole, summary.json last. It takes what there is: of a run
that crashed or was interrupted, what was captured; of one without captures, what the nodes wrote down, and
says so. What cannot be measured is null with a reason in the summary. The steps themselves are in
`analysis.timelines`; see there.
"""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis import tables
from analysis.extraction import listed_captures, load_indices
from analysis.session import spark_session
from analysis.timelines import acts, latency, recovery_table, throughput
from analysis.timelines.acts import Act
from analysis.timelines.agreement import compare, damaged_hosts, unfit_hosts
from analysis.timelines.crossings import Crossing, crossings
from analysis.timelines.facts import Facts, read_facts
from analysis.timelines.periods import Json
from analysis.timelines.schemas import EVENTS
from analysis.timelines.summary import Findings, summarize
from analysis.timelines.tasks import (
    CheckClient,
    FollowStream,
    MeasureLink,
    MessagesToEvents,
    RecordsToEvents,
    Task,
    carry_out,
    nothing,
    write,
)
from experiments.rundir import RunDirectory, write_json

Results = dict[str, pa.Table]

NO_LINK_CAPTURES = "there are no captures of links: what they did was not measured"
NO_HOST_CAPTURES = (
    "there are no captures of hosts: events rest on what clients and drivers wrote down, and latency counts"
    " from the driver's acknowledgement"
)
NO_LATENCY = "latency: no event reached every client"
NO_RECORDS = "the nodes left no records of deliveries: events could not be counted"


@dataclass(frozen=True, slots=True)
class _Case:
    """A run to be analysed, and what there is of it."""

    run: RunDirectory
    content: Json  # of run.json
    facts: Facts
    hosts: bool  # whether there is a capture of any host
    links: bool  # whether there is a capture of any link
    recorded: bool  # whether any driver or client left a record of deliveries
    logged: list[Act]


def analyze(
    run: RunDirectory, *, master: str | None = None, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Analyse a run: write its tables and summary.json, and return the summary.

    master: a Spark master URL; None uses this machine. progress: told each step as it begins. Raises
    AnalysisError or InputError when there is nothing that could be analysed.
    """
    case = _open(run)
    run.analysis.mkdir(exist_ok=True)
    anything = case.hosts or case.links or case.recorded
    results = _results(case, master, progress) if anything else nothing()
    progress("summing up")
    summary = summarize(case.content, case.facts, _findings(case, results))
    write_json(run.summary_json, summary)
    return summary


def _open(run: RunDirectory) -> _Case:
    content = run.read_run()
    facts = read_facts(content)
    there = [c for c in listed_captures(run) if run.capture(Path(c["file"]).name).is_file()]
    writers = (*facts.with_role("driver"), *facts.clients)
    return _Case(
        run=run,
        content=content,
        facts=facts,
        hosts=any(capture.get("host") for capture in there),
        links=any(capture.get("link") for capture in there),
        recorded=any(run.host_deliveries(name).is_file() for name in writers),
        logged=acts.from_logs(run, facts),
    )


def _results(case: _Case, master: str | None, progress: Callable[[str], None]) -> Results:
    """What all tasks returned, together; the tables of captures and of events are written."""
    run, facts = case.run, case.facts
    captured = case.hosts or case.links
    progress("starting Spark")
    with ThreadPoolExecutor(1) as pool:
        # Indexing takes about as long as Java needs to start; the indices stay beside the captures.
        indexing = pool.submit(load_indices, run) if captured else None
        spark = spark_session(master)
        if indexing is not None:
            indexing.result()
    if captured:
        progress("reading packets and messages")
        tables.extract(spark, run)
    progress("following events")
    folder = run.table("events").with_suffix(".part")
    shutil.rmtree(folder, ignore_errors=True)  # of an analysis that was interrupted
    folder.mkdir()
    write(EVENTS.empty_table(), folder / "part-empty.parquet")  # the schema, even where there are no rows
    results = carry_out(spark, _first_tasks(case, folder), "turning messages into events")
    shutil.rmtree(run.table("events"), ignore_errors=True)
    folder.rename(run.table("events"))
    progress("following streams")
    sources, clients = acts.sources(case.logged), _clients(case)
    streams = [
        FollowStream(stream, run.table("events"), facts, clients, sources.get(stream, {}))
        for stream in facts.owner
    ]
    followed = carry_out(spark, streams, "following streams")
    return results | {name: followed[name] for name in ("samples", "pairs", "coverage")}


def _first_tasks(case: _Case, folder: Path) -> list[Task]:
    """Everything that does not need the events of all hosts."""
    run, facts = case.run, case.facts
    drivers = facts.with_role("driver")
    published = tuple((driver, run.host_deliveries(driver)) for driver in drivers)
    files = sorted(run.table("messages").glob("*.parquet")) if case.hosts else []
    unseen = () if case.hosts else (*drivers, *facts.clients)
    links: dict[str, list[Crossing]] = {}
    for crossing in crossings(case.content) if case.links else ():
        links.setdefault(crossing.way[0], []).append(crossing)
    return [
        *(MessagesToEvents(file, folder, facts) for file in files),
        *(RecordsToEvents(name, run.host_deliveries(name), folder, facts) for name in unseen),
        *(MeasureLink(run.table("packets"), tuple(both), facts) for both in links.values()),
        *(CheckClient(name, run.host_deliveries(name), published, facts) for name in facts.clients),
    ]


def _clients(case: _Case) -> tuple[str, ...]:
    """The clients that count for latency and recovery: those whose captures are whole.

    Of a run that did not come to its end all do: their captures are torn, but tell everything until then.
    """
    clients = case.facts.clients
    if not case.hosts or case.facts.outcome != "completed":
        return clients
    damaged = _damaged(case)
    return tuple(name for name in clients if name not in damaged) or clients


def _damaged(case: _Case) -> dict[str, str]:
    """The hosts whose captures are not whole, and why."""
    decoding, captures = (pq.read_table(case.run.table(name)) for name in ("decoding", "captures"))
    return damaged_hosts(case.content, decoding, captures)


def _findings(case: _Case, results: Results) -> Findings:
    """The timelines, written as tables, and what of them goes into the summary."""
    run, facts = case.run, case.facts
    deliveries = results["deliveries"] if case.recorded else None
    asked = acts.from_subscriptions(results["subscriptions"], facts)
    recovery = recovery_table.table(results["pairs"], [*asked, *case.logged], deliveries, facts)
    timelines = {
        "throughput": throughput.table(results["arrivals"], results["wire"] if case.links else None, facts),
        "latency": latency.table(results["samples"], facts),
        "recovery": recovery,
        "fidelity": results["fidelity"],
        "deliveries": results["deliveries"],
    }
    for name, table in timelines.items():
        write(table, run.table(name))
    figures, reasons = recovery_table.headline(recovery, facts)
    notes = [] if case.recorded else [NO_RECORDS]
    notes += [] if case.links else [NO_LINK_CAPTURES]
    notes += [] if case.hosts else [NO_HOST_CAPTURES]
    notes += [] if results["samples"].num_rows else [NO_LATENCY]
    damaged = _damaged(case) if case.hosts else {}
    unfit = unfit_hosts(case.content, facts, damaged)
    comparable = case.hosts and case.recorded
    return Findings(
        deliveries=deliveries.to_pylist() if deliveries is not None else None,
        latency=latency.headline(results["samples"]),
        recovery=figures,
        fidelity=results["fidelity"].to_pylist(),
        agreement=compare(results["coverage"], results["deliveries"], facts, unfit) if comparable else None,
        damaged=damaged,
        notes=(*notes, *reasons),
    )
