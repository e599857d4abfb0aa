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
from analysis.timelines.agreement import Agreement, compare, unfit_hosts
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

NO_CAPTURES = (
    "there are no captures: everything rests on what the nodes wrote down, latency counts from the driver's"
    " acknowledgement, and what the links did was not measured"
)
NO_LINK_CAPTURES = "the links were not captured: what they did was not measured"
NO_LATENCY = "latency: no event reached every client"
NO_RECORDS = "the nodes left no records of deliveries: events could not be counted"


@dataclass(frozen=True, slots=True)
class _Case:
    """A run to be analysed, and what there is of it."""

    run: RunDirectory
    content: Json  # of run.json
    facts: Facts
    captured: bool  # whether there is any capture
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
    results = _results(case, master, progress) if case.captured or case.recorded else nothing()
    progress("summing up")
    summary = summarize(case.content, case.facts, _findings(case, results))
    write_json(run.summary_json, summary)
    return summary


def _open(run: RunDirectory) -> _Case:
    content = run.read_run()
    facts = read_facts(content)
    captures = [run.capture(Path(capture["file"]).name) for capture in listed_captures(run)]
    writers = (*facts.with_role("driver"), *facts.clients)
    return _Case(
        run=run,
        content=content,
        facts=facts,
        captured=any(path.is_file() for path in captures),
        recorded=any(run.host_deliveries(name).is_file() for name in writers),
        logged=acts.from_logs(run, facts),
    )


def _results(case: _Case, master: str | None, progress: Callable[[str], None]) -> Results:
    """What all tasks returned, together; the tables of captures and of events are written."""
    run, facts = case.run, case.facts
    progress("starting Spark")
    with ThreadPoolExecutor(1) as pool:
        # Indexing takes about as long as Java needs to start; the indices stay beside the captures.
        indexing = pool.submit(load_indices, run) if case.captured else None
        spark = spark_session(master)
        if indexing is not None:
            indexing.result()
    if case.captured:
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
    sources = acts.sources(case.logged)
    streams = [
        FollowStream(stream, run.table("events"), facts, sources.get(stream, {})) for stream in facts.owner
    ]
    followed = carry_out(spark, streams, "following streams")
    return results | {name: followed[name] for name in ("samples", "pairs", "coverage")}


def _first_tasks(case: _Case, folder: Path) -> list[Task]:
    """Everything that does not need the events of all hosts."""
    run, facts = case.run, case.facts
    writers = (*facts.with_role("driver"), *facts.clients)
    published = tuple((driver, run.host_deliveries(driver)) for driver in facts.with_role("driver"))
    checks = [CheckClient(client, run.host_deliveries(client), published, facts) for client in facts.clients]
    if not case.captured:
        return [
            *checks,
            *(RecordsToEvents(name, run.host_deliveries(name), folder, facts) for name in writers),
        ]
    links: dict[str, list[Crossing]] = {}
    for crossing in crossings(case.content):
        links.setdefault(crossing.way[0], []).append(crossing)
    files = sorted(run.table("messages").glob("*.parquet"))
    return [
        *(MessagesToEvents(file, folder, facts) for file in files),
        *(MeasureLink(run.table("packets"), tuple(both), facts) for both in links.values()),
        *checks,
    ]


def _findings(case: _Case, results: Results) -> Findings:
    """The timelines, written as tables, and what of them goes into the summary."""
    run, facts = case.run, case.facts
    links = case.captured and bool(crossings(case.content))
    deliveries = results["deliveries"] if case.recorded else None
    asked = acts.from_subscriptions(results["subscriptions"], facts)
    recovery = recovery_table.table(results["pairs"], [*asked, *case.logged], deliveries, facts)
    timelines = {
        "throughput": throughput.table(results["arrivals"], results["wire"] if links else None, facts),
        "latency": latency.table(results["samples"], facts),
        "recovery": recovery,
        "fidelity": results["fidelity"],
        "deliveries": results["deliveries"],
    }
    for name, table in timelines.items():
        write(table, run.table(name))
    figures, reasons = recovery_table.headline(recovery, facts)
    notes = [] if case.recorded else [NO_RECORDS]
    notes += [] if links else [NO_LINK_CAPTURES if case.captured else NO_CAPTURES]
    notes += [] if results["samples"].num_rows else [NO_LATENCY]
    return Findings(
        deliveries=deliveries.to_pylist() if deliveries is not None else None,
        latency=latency.headline(results["samples"]),
        recovery=figures,
        fidelity=results["fidelity"].to_pylist(),
        agreement=_agreement(case, results) if case.captured and case.recorded else None,
        notes=(*notes, *reasons),
    )


def _agreement(case: _Case, results: Results) -> Agreement:
    about = [pq.read_table(case.run.table(name)) for name in ("gaps", "decoding", "captures")]
    unfit = unfit_hosts(case.content, case.facts, *about)
    return compare(results["coverage"], results["deliveries"], case.facts, unfit)
