"""Checks whether a run in memory kept its system's contract, with the definitions of the analysis of files.

`analysis.timelines` compares deliveries, on arrays. Expectations of the experiment on `events` and
`subscriptions` replace those that the contract implies, as in summary.json. Further checks:

- *crashed*: a machine raised an error, for example one of its own assertions;
- *malformed*: the records of the processes do not fit the plan;
- *died*: a process ended without being asked to;
- *stalled*: after the last disturbance, the quiet time and the drain, some events had not arrived;
- *silent*: a running publisher published nothing in the last part of the quiet time although it should have,
  and the system had the time to settle that its contract gives it. A publisher that waits for an
  acknowledgement and gets it in the end is not silent: a small window may be full as long as a system may
  take.

If few events are due, as in a short run, none need be published. If publishers still publish at the end of
the drain, the workload exceeds what the settings let through: then no event counts as lost or stalled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import Ints, ints
from analysis.errors import AnalysisError
from analysis.timelines.delivery.confirmations import summary as confirmations_summary
from analysis.timelines.delivery.outputs import findings_of, last_published_ns
from analysis.timelines.event_figures import event_figures, stream_figures
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from analysis.timelines.summary import DELIVERED, PUBLISHED, RunFindings, run_expectations
from experiments.declared import Trait
from experiments.expectations import Expectation, value_at
from experiments.hunting.case_experiment import LOOKED_AT, LOST
from experiments.planned.draining import settles_by_time
from testbed.backends.in_memory import RunInMemory

EXAMPLES_MAX = 5
SILENT_US = 4_000_000
"""The end of the quiet time: a publisher that publishes nothing in it is stuck, if enough events are due."""
SILENT_EVENTS = 8
BEHIND_US = 1_000_000
"""The end of the drain, in which a publisher that still publishes is behind."""


@dataclass(frozen=True, slots=True)
class AffectedClient:
    """A client and a stream that a violation affects."""

    client: str
    role: str
    stream: str
    count: int


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken property. kind: a figure of summary.json's `events` without its path, or one of the list
    above.
    """

    kind: str
    count: int
    said: str
    examples: tuple[AffectedClient, ...] = ()


@dataclass(frozen=True, slots=True)
class OracleResult:
    """The oracle's result for a run. figures: `events` of summary.json."""

    violations: tuple[Violation, ...]
    figures: dict[str, int | None]


def judge(run: RunInMemory) -> OracleResult:
    """Check a run against its system's contract."""
    if run.failure is not None:
        return OracleResult((Violation("crashed", 1, run.failure, _crashed_at(run)),), {})
    metadata = read_metadata(run.record)
    try:
        found = findings_of(run.hosts, run.record.plan, metadata)
    except AnalysisError as error:
        return OracleResult((Violation("malformed", 1, str(error)),), {})
    figures = event_figures(found.deliveries, found.publishers)
    subscriptions = confirmations_summary(found.confirmations) if found.confirmations.num_rows else {}
    streams = stream_figures(found.deliveries, found.publishers, metadata.stream_names)
    summary = {"events": figures, "subscriptions": subscriptions, "streams": streams}
    given = run.record.request.expect
    not_due = {DELIVERED} if figures["lost"] == figures["delivered"] == 0 else set()
    not_due |= set() if _is_much_due(run) else {PUBLISHED}
    violations = [
        _violation(expectation, summary, found, metadata)
        for text in run_expectations(run.record, metadata, figures["published"])
        if text in given or text not in not_due
        if (expectation := Expectation.parse(text)).path.startswith(LOOKED_AT)
        and not expectation.evaluate(summary)["held"]
    ]
    is_behind = _is_behind(run, metadata)
    if is_behind:
        violations = [each for each in violations if each.kind != LOST]
    violations += _of_processes(run)
    if (
        run.record.times.drained_ns is None
        and not is_behind
        and not settles_by_time(metadata.declared.contract)
    ):
        missing = _missing(found, metadata)
        violations.append(
            Violation("stalled", len(missing), "not all events had arrived in the end", missing)
        )
    violations += _silent(run, metadata)
    return OracleResult(tuple(violations), figures)


def _is_much_due(run: RunInMemory) -> bool:
    """Return whether publishers were to publish more than a few events."""
    plan = run.record.plan
    rate = plan.workload.get("rate_per_s")
    return not isinstance(rate, (int, float)) or rate * plan.duration_us / 1e6 >= SILENT_EVENTS


def _violation(
    expectation: Expectation, summary: dict[str, Any], found: RunFindings, metadata: RunMetadata
) -> Violation:
    section, *_, name = expectation.path.split(".")
    value = value_at(summary, expectation.path)
    examples = _examples(expectation.path, found, metadata) if section != "subscriptions" else ()
    return Violation(name, int(value or 0), f"{expectation.text} does not hold: {value}", examples)


def _examples(path: str, found: RunFindings, metadata: RunMetadata) -> tuple[AffectedClient, ...]:
    """Return the most affected clients. path: of `events`, or of one of `streams`."""
    table, (section, *_, name) = found.deliveries, path.split(".")
    if table is None or name not in table.column_names:
        return ()
    counts = ints(table, name)
    if section == "streams":
        numbers = [at for at, its in metadata.stream_names.items() if path == f"streams.{its}.{name}"]
        counts = np.where(np.isin(ints(table, "stream"), numbers), counts, 0)
    return _with_most(counts, table, metadata)


def _missing(found: RunFindings, metadata: RunMetadata) -> tuple[AffectedClient, ...]:
    """Return the clients that lack most of a stream, as examples of missing events."""
    table = found.deliveries
    if table is None:
        return ()
    return _with_most(ints(table, "published") - ints(table, "covered"), table, metadata)


def _with_most(counts: Ints, table: pa.Table, metadata: RunMetadata) -> tuple[AffectedClient, ...]:
    """Return the clients of the rows with the largest counts. table: the deliveries."""
    order = [index for index in np.argsort(-counts, kind="stable").tolist() if counts[index] > 0]
    rows = [(index, table.column("client")[index].as_py()) for index in order[:EXAMPLES_MAX]]
    return tuple(
        affected(client, table.column("stream")[index].as_py(), int(counts[index]), metadata)
        for index, client in rows
    )


def affected(host: str, stream: int | None, count: int, metadata: RunMetadata) -> AffectedClient:
    """Return the process of a host as an example. stream: None: no stream in particular."""
    name = "" if stream is None else metadata.stream_names.get(stream, str(stream))
    process = next((name for name, its in metadata.host_of.items() if its == host), host)
    return AffectedClient(process, metadata.hosts[host].role, name, count)


def _crashed_at(run: RunInMemory) -> tuple[AffectedClient, ...]:
    name = (run.failure or "").partition(" failed")[0]
    known = {process.name: process.role for process in run.record.plan.processes}
    return (AffectedClient(name, known[name], "", 1),) if name in known else ()


def _of_processes(run: RunInMemory) -> Iterator[Violation]:
    roles = {process.name: process.role for process in run.record.plan.processes}
    died = [process.name for process in run.record.processes if process.died]
    if died:
        examples = tuple(AffectedClient(name, roles[name], "", 1) for name in died[:EXAMPLES_MAX])
        yield Violation("died", len(died), f"{died[0]} ended by itself", examples)


def _is_behind(run: RunInMemory, metadata: RunMetadata) -> bool:
    """Return whether a publisher published until the end of the drain, long after the workload."""
    if metadata.drained_ns is not None or metadata.stopped_ns is None or metadata.ended_ns is None:
        return False
    since_ns = max(metadata.stopped_ns, metadata.ended_ns - BEHIND_US * 1000)
    times = (last_published_ns(run.hosts, name) for name in metadata.having(Trait.PUBLISHER))
    return any(t_ns is not None and t_ns > since_ns for t_ns in times)


def _silent(run: RunInMemory, metadata: RunMetadata) -> Iterator[Violation]:
    """Yield a violation if publishers still run at the end but stopped publishing before."""
    stopped_ns, plan = metadata.stopped_ns, run.record.plan
    rate = plan.workload.get("rate_per_s")
    publishers = [name for name in metadata.having(Trait.PUBLISHER) if name not in metadata.gone]
    if stopped_ns is None or not isinstance(rate, (int, float)) or not publishers:
        return
    due = rate * SILENT_US / 1e6 / max(1, len(publishers))
    since_ns = stopped_ns - SILENT_US * 1000
    settled_ns = metadata.last_change_ns + metadata.declared.contract.settle_us * 1000
    if due < SILENT_EVENTS or settled_ns > since_ns:
        return
    times = {name: last_published_ns(run.hosts, name) for name in publishers}
    silent = [name for name, t_ns in times.items() if t_ns is not None and t_ns < since_ns]
    if silent:
        examples = tuple(affected(name, None, 1, metadata) for name in silent[:EXAMPLES_MAX])
        text = f"{examples[0].client} published nothing in the last {SILENT_US / 1e6:g} s"
        yield Violation("silent", len(silent), text, examples)
