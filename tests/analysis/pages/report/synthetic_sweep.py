"""Sweeps as the testbed and the analysis would write them, with numbers resembling the paper's figures."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.timelines import schemas
from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweepdir import SweepDirectory, SweepRecord, runs
from experiments.planned.plan import HostPlan, Plan, ProcessPlan, RegionPlan
from experiments.records.json_files import write_json
from experiments.records.run_record import Outcome, RunRecord, write_record
from tests.run_json import SMALL

Json = dict[str, Any]
BIN_S = 0.2
DURATION_S = 2.0


def plan(
    regions: int, drivers: int, *, parameters: Mapping[str, Any] = {}, workload: Mapping[str, Any] = {}
) -> Plan:
    """Return the parts of a plan that a sweep's page reads."""
    names = [f"r{number}" for number in range(regions)]
    roles = [("proxy", 1), ("driver", drivers), ("client", 1)]
    processes = tuple(
        ProcessPlan(f"{name}/{role}-{i}", f"{name}-{role}-{i}", name, role, i, 1)
        for name in names
        for role, count in roles
        for i in range(count)
    )
    return replace(
        SMALL,
        regions=tuple(RegionPlan(name, "10.0.0.0/16", f"{name}-gw") for name in names),
        hosts=tuple(HostPlan(p.host, p.region, p.role, p.index, "10.0.0.2", "") for p in processes),
        processes=processes,
        parameters=dict(parameters),
        workload=dict(workload),
        duration_us=int(DURATION_S * 1e6),
    )


def summary(per_s: float, latency_ms: float = 50.0, verdict: str = "passed", **events: int) -> Json:
    """Return the parts of a summary that a sweep's page reads."""
    counts = dict.fromkeys(
        ("lost", "duplicated", "out_of_order", "resurrected", "corrupted", "unordered_publishers"), 0
    )
    wrong = counts | events
    return {
        "verdict": verdict,
        "events": {"delivered": round(per_s), **wrong},
        "throughput": {"events_per_s": per_s * 1.01, "slowest_client_events_per_s": per_s},
        "latency": {"mean_ms": latency_ms, "p50_ms": latency_ms, "p99_ms": 2 * latency_ms},
        "expectations": [
            {"text": f"events.{name} == 0", "value": value, "held": value == 0}
            for name, value in wrong.items()
        ],
        "fidelity": {"valid": True, "reasons": []},
        "problems": [],
    }


Made = tuple[Plan, Json, Callable[[Path], None] | None]
"""A plan, a summary, and what else to write into the run's directory."""


def write_sweep(
    path: Path,
    name: str,
    swept: Mapping[str, Sequence[Any]],
    make: Callable[[Mapping[str, Any], int], Made | None],
    *,
    repeat: int = 1,
    figures: Sequence[Any] = (),
    place: str = "local",
) -> SweepDirectory:
    """Write a sweep's directory. make: from a point's values and seed to its run; None: it was not made."""
    directory = SweepDirectory(path)
    directory.points.mkdir(parents=True)
    points = []
    for run in runs(swept, repeat, 1):
        made = make(run.values, run.seed)
        if made is not None:
            its = directory.make_run(run)
            write_record(its.run_json, RunRecord(made[0]))
            write_json(its.summary_json, made[1])
            if made[2]:
                made[2](its.path)
            points.append(replace(run, state=RunState.DONE, verdict=made[1]["verdict"], duration_s=4.2))
        else:
            points.append(run)
    experiment: Json = {
        "name": name,
        "description": "Made up for tests.",
        "sweep": {k: list(v) for k, v in swept.items()},
    }
    if figures:
        experiment["paper"] = {"document": "sprinkler-2013", "section": "5", "figures": list(figures)}
    record = SweepRecord(
        sweep=f"20260101T000000Z-{name}-abcdef", experiment=experiment, backend=place, links="direct", seed=1,
        repeat=repeat, digest="0", commit="0123456789ab", started_ns=1, runs=tuple(points), ended_ns=2,
        outcome=Outcome.COMPLETED,
    )  # fmt: skip
    directory.write(record)
    return directory


def tables(
    throughput: Mapping[str, float], latency: Mapping[str, float], early: float = 3.0
) -> Callable[[Path], None]:
    """Return a writer of a run's tables: steady values by region, and `early` times as much in the first
    bin.
    """

    def write(path: Path) -> None:
        bins = [round(BIN_S * number, 6) for number in range(int(DURATION_S / BIN_S) + 3)]
        rows = [
            {"scope": "region", "name": region, "direction": None, "start_s": start_s, "bin_s": BIN_S,
             "events_per_s": 0.0 if start_s >= DURATION_S else value * (early if start_s == 0 else 1),
             "bytes_per_s": None}
            for region, value in throughput.items()
            for start_s in bins
        ]  # fmt: skip
        pq.write_table(
            pa.Table.from_pylist(rows, schema=schemas.THROUGHPUT), path / "analysis/throughput.parquet"
        )
        rows = [
            {"origin": region, "start_s": start_s, "bin_s": BIN_S, "count": 100,
             "mean_ms": value * (early if start_s == 0 else 1), "p50_ms": value, "p95_ms": value,
             "p99_ms": value,
             "max_ms": value}
            for region, value in latency.items()
            for start_s in bins
        ]  # fmt: skip
        pq.write_table(pa.Table.from_pylist(rows, schema=schemas.LATENCY), path / "analysis/latency.parquet")

    return write


def throughput(path: Path) -> SweepDirectory:
    """Figure 4: closed loop, 1 to 3 proxies, five repeats."""

    def make(values: Mapping[str, Any], seed: int) -> Made:
        regions, drivers = {"one": 1, "two": 2, "three": 3}[values["topology"]], values["roles.driver"]
        peak = (12.4e6, 11.8e6, 11.2e6)[regions - 1]
        per_s = peak * (1 - math.exp(-drivers * (0.9 + 0.2 * regions))) * (1 + 0.012 * (seed - 3))
        return plan(regions, drivers, workload={"closed_loop": True}), summary(per_s), None

    swept = {"topology": ["one", "two", "three"], "roles.driver": [1, 2, 3, 4, 6]}
    return write_sweep(path, "throughput", swept, make, repeat=5, figures=[4])


def fanout_shuffle(path: Path) -> SweepDirectory:
    """Figure 5b: three regions in virtual time."""

    def make(values: Mapping[str, Any], seed: int) -> Made:
        fanout, shuffle_ms = values["parameters.fanout"], int(values["parameters.shuffle_time"][:-2])
        loss = 0.012 * abs(fanout - 4) ** 1.6 + (0.0022 if fanout < 4 else 0.0003) * shuffle_ms / fanout
        per_s = 2.592e6 * (1.03 - min(loss, 0.6))
        parameters = {"fanout": fanout, "shuffle_time_us": shuffle_ms * 1000}
        made = plan(3, 1, parameters=parameters, workload={"rate_per_s": 864e3})
        return made, summary(per_s), tables(dict.fromkeys(("r0", "r1", "r2"), per_s), {})

    swept = {
        "parameters.fanout": [1, 2, 4, 8, 16],
        "parameters.shuffle_time": ["10ms", "30ms", "100ms", "300ms"],
    }
    return write_sweep(path, "fanout-shuffle", swept, make, figures=["5b"], place="simulator")


def latency_load(path: Path) -> SweepDirectory:
    """Figure 6: six loads, three fanouts."""

    def make(values: Mapping[str, Any], seed: int) -> Made:
        fanout, rate = values["parameters.fanout"], float(values["workload.rate"][:-2])
        offered, most = 3 * rate, 2.6e6 * (1 - 0.05 * abs(fanout - 4))
        per_s = min(offered, most)
        latency_ms = 110 + 60 * (per_s / most) ** 4 + (400 if offered > most else 0) + 8 * fanout
        made = plan(
            3, 1, parameters={"fanout": fanout, "shuffle_time_us": 30_000}, workload={"rate_per_s": rate}
        )
        latency = {f"r{number}": latency_ms + 12 * number for number in range(3)}
        return made, summary(per_s, latency_ms), tables(dict.fromkeys(latency, per_s), latency)

    loads = [f"{round(864e3 * part / 6)}/s" for part in (1, 3, 5, 7, 9, 11)]
    swept = {"parameters.fanout": [2, 4, 8], "workload.rate": loads}
    return write_sweep(path, "latency-load", swept, make, figures=[6], place="simulator")


def collection(path: Path) -> SweepDirectory:
    """Figures 9 and 10, by the proxies' logs."""

    def make(values: Mapping[str, Any], seed: int) -> Made:
        keys, skew = values["workload.keys.distribution"], values["workload.keys.skew"]
        made = plan(1, 1, workload={"keys": {"distribution": keys, "skew": skew, "insertions": 0.0}})

        def logs(directory: Path) -> None:
            lines = [{"t_ns": 1, "level": "info", "event": "started"}]
            for step in range(21):
                generated = round(1.0004 * 10 ** (1 + step / 4))  # the last batch goes a little over
                stored = round(generated ** (1 - 0.11 * (skew - 0.6) - (0.03 if keys == "zipf" else 0)))
                row = {"stream": 0, "events": generated, "live": stored, "stored": stored + 7}
                lines.append({"t_ns": 2, "level": "info", "event": "hist", **row})
            text = "\n".join(json.dumps(line) for line in lines)
            (directory / "logs/r0-proxy-0.jsonl").write_text(text + '\n{"t_ns": 3, "event": "hist", "stre')

        return made, summary(1e5), logs

    swept = {"workload.keys.distribution": ["zeta", "zipf"], "workload.keys.skew": [1.1, 1.5, 2.0]}
    return write_sweep(path, "collection", swept, make, figures=[9, 10])


def nemesis(path: Path) -> SweepDirectory:
    """A sweep of seeds only; two of them failed, one was not run."""

    def make(values: Mapping[str, Any], seed: int) -> Made | None:
        if seed == 40:
            return None
        wrong = {7: {"lost": 120}, 23: {"resurrected": 3, "duplicated": 1}}.get(seed, {})
        return plan(3, 1), summary(2e4, verdict="failed" if wrong else "passed", **wrong), None

    return write_sweep(path, "nemesis", {}, make, repeat=40, place="simulator")


def generic(path: Path) -> SweepDirectory:
    """A sweep that is in no paper."""

    def make(values: Mapping[str, Any], seed: int) -> Made:
        rate, size = float(values["workload.rate"][:-2]), int(values["workload.event_size"][:-1])
        return (
            plan(2, 1, workload={"rate_per_s": rate}),
            summary(2 * rate * (1 - size / 5000), 20 + size / 10),
            None,
        )

    swept = {"workload.event_size": ["10B", "1000B"], "workload.rate": ["1000/s", "5000/s", "20000/s"]}
    return write_sweep(path, "sizes", swept, make, repeat=2)


def zoo(path: Path) -> SweepDirectory:
    """Recovery by topology; one run never recovered."""

    def make(values: Mapping[str, Any], seed: int) -> Made:
        full_s = (0.5, 1.0, 2.0, None)[seed - 1]
        if full_s is not None:
            full_s += 2.0 * (values["topology"] == "star-4")
        figures = {
            "last_change_s": 6.0,
            "full_s": full_s,
            "beyond_way_s": None if full_s is None else round(full_s - 0.1, 6),
        }
        return plan(4, 1), summary(2e3) | {"convergence": figures}, None

    swept = {"topology": ["ring-3", "star-4"]}
    return write_sweep(path, "zoo", swept, make, repeat=4, place="simulator")


def outages(path: Path, systems: Sequence[str] = ("mosquitto",)) -> SweepDirectory:
    """Recovery and losses by the length of an outage, which TCP's next try explains."""

    def make(values: Mapping[str, Any], seed: int) -> Made:
        length_s = float(values["faults.cut.for"][:-1])
        retry_s = length_s / 4
        figures = {"last_change_s": 5.0 + length_s, "full_s": retry_s + 0.1, "tcp_retry_s": retry_s}
        return plan(3, 1), summary(2e3, lost=10 * int(length_s)) | {"convergence": figures}, None

    swept = {"faults.cut.for": ["2s", "10s", "60s"]}
    swept |= {"variant": list(systems)} if len(systems) > 1 else {}
    return write_sweep(path, "outage-lengths", swept, make)


SWEEPS = {
    "zoo": zoo,
    "throughput": throughput,
    "fanout-shuffle": fanout_shuffle,
    "latency-load": latency_load,
    "collection": collection,
    "nemesis": nemesis,
    "generic": generic,
}
