"""summary.json: the verdicts and headline numbers of a run, schema 1.

Pure: plain data in, plain data out. `fidelity.reasons` lists why a run is invalid; it is empty for a valid
run. A figure that could not be measured is null, and `fidelity.notes` has the reason. Keys beyond the
design's:

- `measures`: the system's own measurements: count, mean, min, max and last of each name and value
- `content`: how many subscriptions and clients an event was for, if the contract is by content
- `subscriptions`: how many planned ones were requested, and how many were not confirmed in time, if events
  are due from a subscription on
- `fidelity.notes`, `agreement`, `convergence` and `wan` (see there), `problems`
- `events` has `tombstoned`, `unacknowledged` (missing but not lost: the publisher died before the
  acknowledgement), `stray` (not to be delivered to the client), `published_twice` (under another event's
  number), `resurrected`, `unverified` and `unordered_publishers`
- `throughput.slowest_client_events_per_s`, `latency.mean_ms`
- `streams.<name>`: figures of `events` of each stream, if there are at most a hundred
- `losses`: how many pairs of client and stream lost events, and those that lost most
- `traffic.<name>`: background traffic, if any (see there)
- `recovery.<fault>` has `resubscribe_s`, `returned_s` (after a restore), `lost`, `duplicated`, `out_of_order`
  and `affected_pairs`

A link of `fidelity` has a `state` (proven, violated, unproven: the worst of its periods), `unproven` periods
with their reasons, and `lost` packets by cause. Its other figures are those of one direction and period,
which it names: the one with the largest `excess_p99_ms`, the time beyond the configured link's. An
expectation that depends on unproven periods lists them (`unproven`). A run on several machines also has
`clocks`, a row for each machine, and error bounds of times measured by two clocks: `latency.error_ms` and
`error_max_ms`, `recovery.<fault>.error_s` and a link's `error_ms`.

The verdict, in this order: `crashed` if the run did not complete, `invalid` if the testbed did not behave as
configured, `failed` if an expectation did not hold, a node ended unexpectedly, or packets and records
disagree; else `passed`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from analysis.arrays import NEVER, codes, ints
from analysis.timelines import measures, schemas
from analysis.timelines.agreement import Agreement
from analysis.timelines.delivery import confirmations, selectivity
from analysis.timelines.delivery.sequence_intervals import sums
from analysis.timelines.event_figures import event_figures, losses, stream_figures
from analysis.timelines.links.fidelity import PROVEN, UNPROVEN, VIOLATED
from analysis.timelines.links.link_evidence import LinkEvidence, period_text
from analysis.timelines.links.periods import Json
from analysis.timelines.machine_health import capture_drops, cpu_max, machine_problems
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.under_way import all_mended
from experiments.contract import breaches
from experiments.expectations import Expectation
from experiments.planned.plan import RoutingPlan
from experiments.records.run_record import RunRecord
from experiments.records.summary import METRICS
from topologies.routes import Hop
from topologies.routing import REACTS_S

SCHEMA = 1
THROUGHPUT = tuple(METRICS["throughput"])
STATES = (PROVEN, UNPROVEN, VIOLATED)
"""From best to worst."""
PUBLISHED, DELIVERED = "events.published > 0", "events.delivered > 0"
"""Expectations of every run that does not mention these figures; they depend on no link."""
FLOWS = "convergence.stalled == 0"
"""Expected of every run whose faults were all mended."""
LOST = ("chance", "queue", "cut", "size")
OF_PERIOD = ("delay_p50_ms", "delay_p99_ms", "loss", "excess_p99_ms", "direction", "from_s", "to_s")
LATENCY = tuple(METRICS["latency"])


@dataclass(frozen=True, slots=True)
class RunFindings:
    """Results of all timelines; rows are those of `schemas`. None: not measured, and a note gives the
    reason.
    """

    deliveries: pa.Table | None = None
    publishers: pa.Table = field(default_factory=schemas.PUBLISHERS.empty_table)
    confirmations: pa.Table = field(default_factory=schemas.CONFIRMATIONS.empty_table)
    selectivity: pa.Table = field(default_factory=schemas.SELECTIVITY.empty_table)
    latency: Mapping[str, float | None] | None = None
    recovery: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    convergence: Mapping[str, Any] = field(default_factory=dict)
    silent: frozenset[Hop] = frozenset()  # owner and region of each stream that stays stalled at a client
    wan: Mapping[str, Any] = field(default_factory=dict)  # see `analysis.timelines.links.wan`
    routes: list[dict[str, Any]] = field(default_factory=list)  # old and new paths of each fault's streams
    fidelity: list[dict[str, Any]] | None = None
    agreement: Agreement | None = None
    damaged: Mapping[str, str] = field(default_factory=dict)  # hosts with incomplete captures, and why
    measured: list[dict[str, Any]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    clocks: list[dict[str, Any]] = field(default_factory=list)  # of each machine, if there are several
    unknown_clocks: tuple[str, ...] = ()  # why times of different machines are not comparable
    # `analysis.timelines.links.traffic`
    traffic: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def summarize(record: RunRecord, metadata: RunMetadata, findings: RunFindings) -> dict[str, Any]:
    """Return the content of summary.json."""
    throughput, notes = _throughput(metadata, findings.deliveries)
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "run": metadata.run,
        "experiment": metadata.experiment,
        "seed": metadata.seed,
        "links": metadata.links_kind,
        "verdict": "",
        "fidelity": _fidelity(record, metadata, findings, notes),
        "events": event_figures(findings.deliveries, findings.publishers),
        "throughput": throughput,
        "latency": dict(findings.latency or dict.fromkeys(LATENCY)),
        "faults": [_fault(fault, metadata) for fault in metadata.faults],
        "recovery": {name: dict(figures) for name, figures in findings.recovery.items()},
        "convergence": dict(findings.convergence),
        "wan": dict(findings.wan),
        "agreement": asdict(findings.agreement or Agreement()),
        "problems": list(record.problems),
        **_optional_sections(record, metadata, findings),
    }
    stalled = findings.convergence.get("stalled")
    wanted = run_expectations(record, metadata, summary["events"]["published"], stalled)
    evidence = LinkEvidence(findings.fidelity or [], findings.routes, metadata, findings.silent)
    summary["expectations"] = [_expectation(text, summary, evidence) for text in wanted]
    summary["verdict"] = _verdict(summary, metadata, died=any(process.died for process in record.processes))
    return summary


def _fidelity(record: RunRecord, metadata: RunMetadata, findings: RunFindings, notes: list[str]) -> Json:
    """Return whether the testbed behaved as configured. notes: on values that could not be measured."""
    invalid = [
        *_unfinished(metadata),
        *filter(None, [metadata.window.problem]),
        *machine_problems(record, metadata),
        *findings.unknown_clocks,
        *_link_problems(findings),
    ]
    if metadata.outcome == "completed":  # otherwise truncated captures are expected
        invalid += [f"{host}: {why}" for host, why in sorted(findings.damaged.items())]
    lines = [
        *_loosened(record),
        *_rerouted(metadata, record.plan.routing),
        *confirmations.notes(findings.confirmations),
        *findings.notes,
        *notes,
        *_unmeasured_links(findings),
        *_vague_links(findings),
        *_not_compared(findings),
    ]
    return {
        "valid": not invalid,
        "reasons": list(dict.fromkeys(invalid)),
        "notes": list(dict.fromkeys(lines)),
        "links": _links(findings.fidelity or []),
        "capture_drops": capture_drops(record),
        "cpu_max": cpu_max(record, metadata),
    }


def _optional_sections(record: RunRecord, metadata: RunMetadata, findings: RunFindings) -> dict[str, Any]:
    """Return the sections that only some runs have."""
    came = sum(each.mends for each in metadata.churn)
    sections = {
        "streams": stream_figures(findings.deliveries, findings.publishers, metadata.stream_names),
        "losses": losses(findings.deliveries, metadata.stream_names),
        "subscriptions": findings.confirmations.num_rows and confirmations.summary(findings.confirmations),
        "content": selectivity.summary(findings.selectivity),
        "churn": record.plan.churn and {"came": came, "went": len(metadata.churn) - came},
        "measures": measures.summary(findings.measured),
        "traffic": {name: dict(figures) for name, figures in findings.traffic.items()},
        "clocks": findings.clocks,
    }
    return {name: section for name, section in sections.items() if section}


def _rerouted(metadata: RunMetadata, routing: RoutingPlan | None) -> list[str]:
    """Return when routes changed during the run, and what is not proven, if routes were not fixed."""
    if metadata.rerouted is None or routing is None:
        return []
    spans = metadata.rerouted.changed_ns(metadata.zero_ns, metadata.ended_ns or NEVER)
    reacts_s = routing.dead_s + 2 * routing.hello_s + REACTS_S[routing.protocol]
    starts_ns = [period.start_ns or 0 for periods in metadata.periods.values() for period in periods]
    flaps = [span for span in spans if all(not 0 <= span[0] - each <= reacts_s * 10**9 for each in starts_ns)]
    planned = "but `wan` and `traffic` count packets on the planned routes"
    text = f"the gateways' routes changed from {_times(spans, metadata)}"
    flapped = f"the gateways' routes changed by themselves from {_times(flaps, metadata)}"
    return [
        text if spans else "the gateways' routes never changed",
        *([f"{flapped}: no link changed in the {reacts_s} s before"] if flaps else []),
        f"routes were not fixed: links are judged by the packets that crossed them, {planned}",
    ]


def _times(spans: Sequence[tuple[int, int]], metadata: RunMetadata) -> str:
    return ", ".join(
        f"{metadata.seconds(first):.2f} to {metadata.seconds(last):.2f} s" for first, last in spans
    )


def _loosened(record: RunRecord) -> list[str]:
    """Return notes if the experiment requires less of the system than its contract promises."""
    asked = record.request.contract
    return [f"the contract was loosened: {name} {value}" for name, value in asked.items()]


def run_expectations(
    record: RunRecord, metadata: RunMetadata, published: int | None, stalled: int | None = None
) -> list[str]:
    """Return the expectations of the run: its own, and implied ones for figures that it does not mention.

    Implied are that something was published, that it was delivered if it was for any client, that deliveries
    follow the contract, and that every stream flows again if all faults were mended. stalled: streams of
    clients that did not; None if unknown.
    """
    stated = list(record.request.expect)
    if not record.experiment:
        return stated
    implied = [PUBLISHED]
    if published:
        implied += [DELIVERED] if _has_audience(record, metadata) else []
        implied += [f"{path} == 0" for path in breaches(metadata.declared.contract)]
    if stalled is not None and all_mended(metadata):
        implied.append(FLOWS)
    mentioned = {Expectation.parse(text).path for text in stated}
    return stated + [text for text in implied if Expectation.parse(text).path not in mentioned]


def _has_audience(record: RunRecord, metadata: RunMetadata) -> bool:
    """Return whether any client is to get events: one that subscribes, if the workload defines
    subscriptions.
    """
    for_all = metadata.declared.contract.since == "beginning" or "kind" not in record.plan.workload
    if for_all:
        return bool(metadata.clients)
    return any(process.subscriptions for process in record.plan.processes)


def _expectation(text: str, summary: Json, evidence: LinkEvidence) -> dict[str, Any]:
    """Return the result of an expectation, with the unproven periods of links that it depends on, if any."""
    expectation = Expectation.parse(text)
    unproven = [] if text in {PUBLISHED, DELIVERED} else evidence.unproven(expectation.path)
    return expectation.evaluate(summary) | ({"unproven": unproven} if unproven else {})


def _verdict(summary: Json, metadata: RunMetadata, *, died: bool) -> str:
    if metadata.outcome != "completed":
        return "crashed"
    if not summary["fidelity"]["valid"]:
        return "invalid"
    held = all(expectation["held"] for expectation in summary["expectations"])
    return "passed" if held and not died and summary["agreement"]["held"] is not False else "failed"


def _unfinished(metadata: RunMetadata) -> list[str]:
    if metadata.outcome == "completed":
        return []
    return [f"the run {'was interrupted' if metadata.outcome == 'interrupted' else 'did not complete'}"]


def _link_problems(findings: RunFindings) -> list[str]:
    return [
        f"{period_text(row)}: {row['reason']}" + (f" ({row['cause']})" if row.get("cause") else "")
        for row in findings.fidelity or ()
        if not row["valid"]
    ]


def _unmeasured_links(findings: RunFindings) -> list[str]:
    """Return why a link's delay is null; only for links without any measured period."""
    measured = {row["link"] for row in findings.fidelity or () if row["delay_p50_ms"] is not None}
    return [
        f"{row['link']}: {row['reason']}"
        for row in findings.fidelity or ()
        if row["valid"] and row["link"] not in measured and row["reason"]
    ]


def _vague_links(findings: RunFindings) -> list[str]:
    """Return one note on links that were measured, but with clock errors too large for a verdict."""
    vague = [
        row
        for row in findings.fidelity or ()
        if row["verdict"] == UNPROVEN and row.get("error_ms") is not None
    ]
    if not vague:
        return []
    worst = max(vague, key=lambda row: float(row.get("error_ms") or 0.0))
    return [f"{', '.join(dict.fromkeys(row['link'] for row in vague))}: {worst['reason']}"]


def _links(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for link in dict.fromkeys(row["link"] for row in rows):
        mine = [row for row in rows if row["link"] == link]
        row = max(mine, key=_excess)
        found.append(
            {
                "link": link,
                "delay_ms": row["configured_delay_ms"],
                **{name: row[name] for name in OF_PERIOD},
                **({"error_ms": row["error_ms"]} if row.get("error_ms") is not None else {}),
                "lost": {what: sum(each[f"lost_{what}"] for each in mine) for what in LOST},
                "state": max((each["verdict"] for each in mine), key=STATES.index),
                "unproven": [
                    f"{period_text(each)}: {each['reason']}" for each in mine if each["verdict"] == UNPROVEN
                ],
                "valid": all(each["valid"] for each in mine),
            }
        )
    return found


def _excess(row: Json) -> float:
    return float("-inf") if row["excess_p99_ms"] is None else float(row["excess_p99_ms"])


def _not_compared(findings: RunFindings) -> list[str]:
    """Return a note if most deliveries could not be checked for corruption.

    Only batches that are the same as the publisher's can be checked.
    """
    events = event_figures(findings.deliveries, findings.publishers)
    unverified, delivered = events["unverified"] or 0, events["delivered"] or 0
    if unverified * 2 <= delivered:
        return []
    return [
        f"corruption: {unverified:,} of {delivered:,} deliveries could not be compared with the published "
        "events: clients recorded them in other batches than publishers"
    ]


def _throughput(
    metadata: RunMetadata, deliveries: pa.Table | None
) -> tuple[dict[str, float | None], list[str]]:
    """Return the events a second at one client while the drivers ran, mean and at the slowest, and their
    bytes.

    Clients that were not present all the time do not count, unless there are no others; nor do clients
    without due events.
    """
    nothing: dict[str, float | None] = dict.fromkeys(THROUGHPUT)
    if not metadata.clients:
        return nothing, ["throughput: there are no clients"]
    if metadata.window.problem is not None:
        return nothing, []
    if deliveries is None or metadata.stopped_ns is None or metadata.stopped_ns <= metadata.zero_ns:
        return nothing, [] if deliveries is None else ["throughput: the publishers did not finish"]
    seconds = metadata.seconds(metadata.stopped_ns)
    concerned = set(deliveries.column("client").to_pylist())
    there = metadata.steady_clients or metadata.clients
    clients = [name for name in there if name in concerned] or list(there)
    client = codes(deliveries.column("client"), clients)
    events = ints(deliveries, "delivered_while_running")
    came = sums(client[client >= 0], events[client >= 0], len(clients))
    events_per_s = int(came.sum()) / len(came) / seconds
    size = metadata.event_bytes
    return {
        "events_per_s": events_per_s,
        "slowest_client_events_per_s": int(came.min()) / seconds,
        "bytes_per_s": events_per_s * size if size else None,
    }, ([] if size else ["throughput.bytes_per_s: events have no fixed size"])


def _fault(fault: Any, metadata: RunMetadata) -> dict[str, Any]:
    return {
        "name": fault.name,
        "kind": fault.kind,
        "target": fault.target,
        "requested_s": fault.requested_s,
        "applied_s": None if fault.applied_ns is None else round(metadata.seconds(fault.applied_ns), 6),
    }
