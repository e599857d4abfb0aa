"""The content of run.json as rows: settings, hosts, processes, streams, links and faults of a run.

Each function yields a table's rows as plain values by column; `analysis.sql.tables` defines the columns. The
settings differ by system; each becomes a column.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from analysis.capture.clocks.clocks_file import read_machines
from analysis.capture.clocks.run_clocks import clocks_table
from experiments.overrides import leaves
from experiments.planned.changes import LinkDirectionName
from experiments.planned.plan import LinkPlan
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

Rows = Iterator[dict[str, Any]]

FINDINGS: Final = ("verdict", "valid")
"""The columns of `runs` from summary.json."""


def runs(run: RunDirectory, record: RunRecord) -> Rows:
    """Yield the run itself, a single row without the `settings`."""
    times, plan = record.times, record.plan
    yield {
        "path": str(run.path.absolute()),
        "experiment": plan.experiment,
        "system": plan.system,
        "topology": str(record.topology.get("name", "")),
        "seed": str(record.seed),
        "links": record.links,
        "commit": record.commit,
        "outcome": record.outcome,
        **_findings(run),
        "started_ns": times.started_ns,
        "zero_ns": times.zero_ns,
        "ended_ns": times.ended_ns,
        "duration_s": plan.duration_us / 1e6,
        "regions": len(plan.regions),
        "processes": len(plan.processes),
        "problems": list(record.problems),
    }


def settings(record: RunRecord) -> dict[str, Any]:
    """Return the parameters of the system and the settings of the workload and of a topology generated within
    the experiment, by column name.

    Names that are invalid for a column, or equal to another except for case, are left out.
    """
    found: dict[str, Any] = {}
    known: set[str] = set()
    written = record.experiment.get("topology")
    generated = dict(leaves(written)) if isinstance(written, Mapping) and "kind" in written else {}
    asked = {path.replace(".", "_"): value for path, value in generated.items()}
    sections = (
        ("parameter", record.plan.parameters),
        ("workload", record.plan.workload),
        ("topology", asked),
    )
    for prefix, values in sections:
        for name, value in values.items():
            column = f"{prefix}_{name}"
            if column.isascii() and column.isidentifier() and column.lower() not in known:
                known.add(column.lower())
                found[column] = value if value is None or _is_plain(value) else json.dumps(value)
    return found


def settings_table(of_runs: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """Return a table with a row of settings for each run; null if a run lacks a setting."""
    names = dict.fromkeys(name for values in of_runs.values() for name in values)
    columns = {name: _column([values.get(name) for values in of_runs.values()]) for name in names}
    return pa.table({"run": pa.array(list(of_runs), pa.string()), **columns})


def hosts(_: RunDirectory, record: RunRecord) -> Rows:
    """Yield hosts, including gateways and hosts of background traffic."""
    machines = record.machine_of
    for host in record.plan.hosts:
        yield {
            "host": host.name,
            "region": host.region,
            "role": host.role,
            "index": host.index,
            "address": host.address,
            "machine": machines.get(host.name),
        }


def processes(_: RunDirectory, record: RunRecord) -> Rows:
    """Yield processes, a row for each process generation."""
    planned = {process.name: process for process in record.plan.processes}
    generations: dict[str, int] = {}
    for process in record.processes:
        generations[process.name] = generations.get(process.name, -1) + 1
        plan, ended = planned.get(process.name), process.exit
        yield {
            "process": process.name,
            "host": process.host,
            "region": plan and plan.region,
            "role": plan and plan.role,
            "life": generations[process.name],
            "exit_code": ended and ended.code,
            "exit_signal": ended and ended.signal,
            "exit_ns": ended and ended.time_ns,
            "exit_expected": ended and ended.expected,
            "processor_s": process.processor_s,
        }


def streams(_: RunDirectory, record: RunRecord) -> Rows:
    """Yield streams by number."""
    for stream in record.plan.streams:
        yield {
            "stream": stream.number,
            "name": stream.name,
            "region": stream.region,
            "publishers": list(stream.publishers),
        }


def links(_: RunDirectory, record: RunRecord) -> Rows:
    """Yield links, a row for each direction: the initial configuration and the counters."""
    counted = {(each.link, each.direction): each for each in record.counters}
    for link in record.plan.links:
        for direction in LinkDirectionName:
            counts = counted.get((link.name, direction))
            yield {
                "link": link.name,
                "direction": direction.value,
                "kind": link.kind,
                **_ends(link, direction),
                **_parameters(link, direction),
                "frames": counts and counts.frames,
                "bytes": counts and counts.bytes,
                "dropped_loss": counts and counts.dropped_loss,
                "dropped_queue": counts and counts.dropped_queue,
                "dropped_cut": counts and counts.dropped_blackhole,
                "late_p99_us": counts and counts.lateness_p99_us,
            }


def faults(_: RunDirectory, record: RunRecord) -> Rows:
    """Yield faults: planned times, when they were applied, and until when their effect lasted."""
    zero_ns = record.times.zero_ns or 0
    applied: dict[str, int] = {}
    for change, carried in record.changes_applied:
        if carried.applied_ns is not None:
            applied[change.fault] = min(carried.applied_ns, applied.get(change.fault, carried.applied_ns))
    for fault in record.plan.faults:
        from_ns = applied.get(fault.name)
        yield {
            "fault": fault.name,
            "kind": fault.kind,
            "target": fault.target,
            "at_s": fault.at_us / 1e6,
            "until_s": None if fault.until_us is None else fault.until_us / 1e6,
            "from_ns": from_ns,
            "to_ns": None if from_ns is None else _end_ns(fault.until_us, record, zero_ns),
        }


def clocks(run: RunDirectory, _: RunRecord) -> Rows:
    """Yield the clocks of a run on several machines."""
    yield from clocks_table(read_machines(run)).to_pylist()


def _end_ns(until_us: int | None, record: RunRecord, zero_ns: int) -> int | None:
    return record.times.ended_ns if until_us is None else zero_ns + until_us * 1000


def _findings(run: RunDirectory) -> dict[str, Any]:
    try:
        summary = run.read_summary()
    except InputError:
        return dict.fromkeys(FINDINGS)
    fidelity = summary.get("fidelity")
    valid = fidelity.get("valid") if isinstance(fidelity, Mapping) else None
    verdict = summary.get("verdict")
    return {
        "verdict": verdict if isinstance(verdict, str) else None,
        "valid": valid if isinstance(valid, bool) else None,
    }


def _ends(link: LinkPlan, direction: LinkDirectionName) -> dict[str, str]:
    ends = (link.a, link.b) if direction is LinkDirectionName.FORWARD else (link.b, link.a)
    return dict(zip(("origin", "target"), ends, strict=True))


def _parameters(link: LinkPlan, direction: LinkDirectionName) -> dict[str, Any]:
    parameters = link.towards(direction)
    return {
        "delay_ms": parameters.delay_us / 1000,
        "jitter_ms": parameters.jitter_us / 1000,
        "loss": parameters.loss,
        "rate_bits_per_s": parameters.rate_bits_per_s,
        "queue_packets": parameters.queue_packets,
    }


def _is_plain(value: Any) -> bool:
    return isinstance(value, bool | float | str) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63)


def _column(values: list[Any]) -> pa.Array:
    """Return a column of values; they become text if their types differ."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        values = [None if value is None else float(value) for value in values]
    elif len(kinds) > 1:
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pa.array(values, None if kinds else pa.string())
