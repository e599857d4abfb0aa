"""Whether a run in memory kept what its system promises, by the same definitions as the analysis of files.

Deliveries are compared by `analysis.timelines`, on arrays. What the experiment expects of `events` and
`subscriptions` counts in place of what the contract implies, as in summary.json. Beyond that:

- *crashed*: a machine raised an error, among them its own assertions of what must always hold;
- *died*: a process ended without being told to;
- *stalled*: after the last disturbance, the quiet time and the drain not everything had come;
- *silent*: a publisher that runs published nothing in the last part of the quiet time, though it was to.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.timelines import deliveries, schemas
from analysis.timelines.arrays import ints, rows
from analysis.timelines.collecting import marks_in
from analysis.timelines.confirmations import check_confirmations, planned_subscriptions
from analysis.timelines.confirmations import summary as confirmations_summary
from analysis.timelines.content import EVENT, INTEREST, Content, content_of
from analysis.timelines.delivery_records import as_table, host_records
from analysis.timelines.measures import measures_in
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from analysis.timelines.summary import Findings, event_figures, wanted_of
from analysis.timelines.verification import check_order
from experiments.declared import Trait
from experiments.draining import settles_by_time
from experiments.expectations import Expectation
from node.core.deliveries import RecordKind
from testbed.backends.in_memory import RunInMemory

EXAMPLES_MAX = 5
SILENT_US = 4_000_000
"""Of the quiet time at the end: who publishes nothing in it is stuck, where more than a few events are due."""
SILENT_EVENTS = 8
NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Example:
    """A client and a stream with which it was so."""

    client: str
    role: str
    stream: str
    count: int


@dataclass(frozen=True, slots=True)
class Violation:
    """What was broken. kind: a figure of summary.json's `events` without its path, or as above."""

    kind: str
    count: int
    said: str
    examples: tuple[Example, ...] = ()

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles to which it happened."""
        return tuple(sorted({example.role for example in self.examples}))

    @property
    def cause(self) -> str:
        """The same for what is likely to have one cause, before anything is shrunk."""
        said = NUMBERS.sub("#", self.said) if self.kind == "crashed" else ""
        return " ".join((self.kind, *self.roles, said)).strip()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an oracle says of a run. figures: `events` of summary.json."""

    violations: tuple[Violation, ...]
    figures: dict[str, int | None]


def judge(run: RunInMemory) -> Judgement:
    """Hold a run against its promise."""
    if run.failure is not None:
        return Judgement((Violation("crashed", 1, run.failure, _crashed_at(run)),), {})
    metadata = read_metadata(run.record)
    found = _findings(run, metadata)
    figures = event_figures(found)
    subscriptions = confirmations_summary(found.confirmations) if found.confirmations.num_rows else {}
    summary = {"events": figures, "subscriptions": subscriptions}
    violations = [
        _violation(expectation, summary, found, metadata)
        for text in wanted_of(run.record, metadata, figures["published"])
        if (expectation := Expectation.parse(text)).path.startswith(("events.", "subscriptions."))
        and not expectation.evaluate(summary)["held"]
    ]
    violations += _of_processes(run)
    if run.record.times.drained_ns is None and not settles_by_time(metadata.declared.contract):
        missing = tuple(_missing(found, metadata))
        violations.append(Violation("stalled", len(missing), "not everything had come in the end", missing))
    violations += _silent(run, metadata)
    return Judgement(tuple(violations), figures)


def _findings(run: RunInMemory, metadata: RunMetadata) -> Findings:
    """What the analysis finds in files: see `analysis.timelines.tasks.records.CheckClients`."""
    drivers, clients = metadata.having(Trait.PUBLISHER), metadata.clients
    published, got = (
        as_table([host_records(name, run.hosts[name].records) for name in names])
        for names in (drivers, clients)
    )
    content = _content(run, metadata)
    marks = marks_in(bytes(run.hosts[name].marks) for name in drivers) if metadata.marked else None
    planned = planned_subscriptions(run.record.plan, metadata)
    asked = {name: planned.get(name, ()) for name in clients} if planned else {}
    orders = [
        check_order(name, as_table([host_records(name, run.hosts[name].records)])) for name in drivers
    ]
    return Findings(
        deliveries=deliveries.check(clients, published, got, metadata, marks, content=content),
        publishers=pa.concat_tables([schemas.PUBLISHERS.empty_table(), *orders]),
        confirmations=check_confirmations(asked, got, metadata, content),
    )


def _content(run: RunInMemory, metadata: RunMetadata) -> Content | None:
    if metadata.declared.contract.audience != "content":
        return None
    measured = {
        name: measures_in(name, bytes(run.hosts[name].measures))
        for name in {*metadata.having(Trait.PUBLISHER), *metadata.clients}
    }
    events = [
        block for name in metadata.having(Trait.PUBLISHER) for block in measured[name].get(EVENT, ())
    ]
    return content_of(
        metadata.domains, events, [(name, measured[name].get(INTEREST, ())) for name in metadata.clients]
    )


def _violation(
    expectation: Expectation, summary: dict[str, Any], found: Findings, metadata: RunMetadata
) -> Violation:
    section, _, name = expectation.path.partition(".")
    value = summary[section].get(name)
    examples = tuple(_examples(name, found, metadata)) if section == "events" else ()
    return Violation(name, int(value or 0), f"{expectation.text} does not hold: {value}", examples)


def _examples(name: str, found: Findings, metadata: RunMetadata) -> Iterator[Example]:
    table = found.deliveries
    if table is None or name not in table.column_names:
        return
    counts = ints(table, name)
    order = [index for index in np.argsort(-counts, kind="stable").tolist() if counts[index] > 0]
    for index in order[:EXAMPLES_MAX]:
        client, stream = (table.column(each)[index].as_py() for each in ("client", "stream"))
        yield Example(
            _process(client, metadata),
            metadata.hosts[client].role,
            metadata.stream_names.get(stream, str(stream)),
            int(counts[index]),
        )


def _missing(found: Findings, metadata: RunMetadata) -> Iterator[Example]:
    """Who has not all of a stream, as examples of what did not come."""
    table = found.deliveries
    if table is None:
        return
    counts = ints(table, "published") - ints(table, "covered")
    order = [index for index in np.argsort(-counts, kind="stable").tolist() if counts[index] > 0]
    for index in order[:EXAMPLES_MAX]:
        client, stream = (table.column(each)[index].as_py() for each in ("client", "stream"))
        name = metadata.stream_names.get(stream, str(stream))
        yield Example(_process(client, metadata), metadata.hosts[client].role, name, int(counts[index]))


def _process(host: str, metadata: RunMetadata) -> str:
    return next((name for name, its in metadata.host_of.items() if its == host), host)


def _crashed_at(run: RunInMemory) -> tuple[Example, ...]:
    name = (run.failure or "").partition(" failed")[0]
    known = {process.name: process.role for process in run.record.plan.processes}
    return (Example(name, known[name], "", 1),) if name in known else ()


def _of_processes(run: RunInMemory) -> Iterator[Violation]:
    roles = {process.name: process.role for process in run.record.plan.processes}
    died = [process.name for process in run.record.processes if process.died]
    if died:
        examples = tuple(Example(name, roles[name], "", 1) for name in died[:EXAMPLES_MAX])
        yield Violation("died", len(died), f"{died[0]} ended by itself", examples)


def _silent(run: RunInMemory, metadata: RunMetadata) -> Iterator[Violation]:
    """Publishers that are there in the end, and stopped publishing before."""
    stopped_ns, plan = metadata.stopped_ns, run.record.plan
    rate = plan.workload.get("rate_per_s")
    publishers = [name for name in metadata.having(Trait.PUBLISHER) if name not in metadata.gone]
    if stopped_ns is None or not isinstance(rate, (int, float)) or not publishers:
        return
    due = rate * SILENT_US / 1e6 / max(1, len(publishers))
    since_ns = stopped_ns - SILENT_US * 1000
    if due < SILENT_EVENTS or metadata.last_change_ns > since_ns:
        return
    silent = [name for name in publishers if not _published_since(run, name, since_ns)]
    active = [name for name in silent if len(run.hosts[name].records)]
    if active:
        examples = tuple(_as_example(name, metadata) for name in active[:EXAMPLES_MAX])
        said = f"{examples[0].client} published nothing in the last {SILENT_US / 1e6:g} s"
        yield Violation("silent", len(active), said, examples)


def _as_example(host: str, metadata: RunMetadata) -> Example:
    return Example(_process(host, metadata), metadata.hosts[host].role, "", 1)


def _published_since(run: RunInMemory, host: str, since_ns: int) -> bool:
    table = as_table([host_records(host, run.hosts[host].records)])
    published = rows(table, kind=int(RecordKind.PUBLISHED))
    times = ints(published, "t_ns")
    ever: Sequence[int] = times.tolist()
    return not ever or bool(times.max() >= since_ns)
