"""Writes a run directory as the testbed and the analysis would after an inter-region link failure.

A Scenario describes the run; the tables are computed from it. Nothing is started, no Spark, no packets.
"""

import json
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.timelines import schemas
from experiments.planned.changes import LinkChange, LinkDirectionName, LinkState
from experiments.planned.plan import (
    CapturePlan,
    FaultPlan,
    HostPlan,
    LinkPlan,
    Plan,
    ProcessPlan,
    RegionPlan,
    StreamPlan,
    plan_to_json,
)
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.report_scenario import DEFAULT, DELAYS_MS, ZERO_NS, Scenario
from tests.analysis.pages.report.synthetic_tables import fidelity, latency, recovered, recovery, throughput
from tests.analysis.pages.report.synthetic_transfers import write_transfers
from topologies.link_parameters import LinkParameters


def write_run(parent: Path, scenario: Scenario = DEFAULT) -> RunDirectory:
    """Write a complete run directory below `parent`."""
    name = f"20260101T000000Z-{''.join(c for c in scenario.experiment if c.isalnum() or c == '-')}-0a1b2c"
    (parent / name).mkdir(parents=True)
    directory = RunDirectory(parent / name)
    plan = make_plan(scenario)
    directory.run_json.write_text(json.dumps(run_json(name, scenario, plan)))
    directory.summary_json.write_text(json.dumps(summary_json(name, scenario)))
    if not scenario.crashed:
        random = np.random.default_rng(1)
        for table, rows in {
            "throughput": throughput(scenario, plan, random),
            "latency": latency(scenario, random),
            "recovery": recovery(scenario),
            "fidelity": fidelity(scenario, plan) if scenario.captures else [],
        }.items():
            if rows:
                write_table(directory, table, rows)
        if scenario.captures:
            write_transfers(directory, scenario)
    return directory


def write_table(directory: RunDirectory, name: str, rows: list[dict[str, Any]]) -> None:
    """Parquet as Spark leaves it: a directory of part files."""
    path = directory.table(name)
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.Table.from_pylist(rows, schema=getattr(schemas, name.upper())), path / "part-00000.snappy.parquet"
    )


def make_plan(scenario: Scenario) -> Plan:
    """Return the plan of that run, as plain data."""
    regions, roles = scenario.regions, {"proxy": 1, "driver": 1, "client": 2}
    hosts = [
        HostPlan(f"{r}-{role}-{i}", r, role, i, f"10.{n}.0.{2 + i}", f"lan-{r}-{role}-{i}")
        for n, r in enumerate(regions)
        for role, count in roles.items()
        for i in range(count)
    ]
    wan = [
        LinkPlan(f"{a}-{b}", "wan", a, b, parameters := wan_parameters(scenario, i), parameters)
        for i, (a, b) in enumerate(combinations(regions, 2))
    ]
    lan_parameters = LinkParameters(delay_us=1000, rate_bits_per_s=1_000_000_000)
    lan = [
        LinkPlan(host.lan_link, "lan", host.name, host.region, lan_parameters, lan_parameters)
        for host in hosts
    ]
    captures = [CapturePlan(f"{host.name}-eth0.pcap", host=host.name) for host in hosts]
    captures += [
        CapturePlan(f"{link.name}@{side}.pcap", link=link.name, side=side)
        for link in wan
        for side in (link.a, link.b)
    ]
    target = "-".join(scenario.cut_ends)
    times = {"cut": scenario.cut_s, "restore": scenario.restore_s}
    faults = (
        [FaultPlan(name, name, target, int(at_s * 1e6)) for name, at_s in times.items()]
        if scenario.fault
        else []
    )
    faults += [FaultPlan(f"cut-{link}", "cut", link, int(at_s * 1e6)) for link, at_s in scenario.more_cuts]
    parameters_of = {link.name: link.forward for link in wan}
    states = {"cut": LinkState.BLACKHOLE, "restore": LinkState.UP}
    changes = tuple(
        LinkChange(
            fault.at_us, fault.name, fault.target, direction, states[fault.kind], parameters_of[fault.target]
        )
        for fault in faults
        for direction in LinkDirectionName
    )
    return Plan(
        experiment=scenario.experiment,
        system="sprinkler",
        parameters={"advertisement_period_us": 1_000_000, "port": 7000},
        workload={"event_size_bytes": 10, "rate_per_s": scenario.rate_per_s, "closed_loop": False},
        seed=1,
        duration_us=int(scenario.duration_s * 1e6),
        drain_us=5_000_000,
        links_kind="auto",
        congestion_control=None,
        snaplen_bytes=None,
        regions=tuple(RegionPlan(r, f"10.{n}.0.0/16", f"{r}-gw") for n, r in enumerate(regions)),
        hosts=tuple(hosts),
        links=(*wan, *lan),
        processes=tuple(
            ProcessPlan(f"{h.region}/{h.role}-{h.index}", h.name, h.region, h.role, h.index, 1) for h in hosts
        ),
        streams=tuple(StreamPlan(n, r, r, (r,)) for n, r in enumerate(regions)),
        captures=tuple(captures) if scenario.captures else (),
        faults=tuple(faults),
        changes=changes,
    )


def wan_parameters(scenario: Scenario, index: int) -> LinkParameters:
    """LinkParameters of the index-th WAN link."""
    delay_ms = list(DELAYS_MS.values())[index % len(DELAYS_MS)]
    return LinkParameters(delay_us=delay_ms * 1000, rate_bits_per_s=scenario.link_rate_bits_per_s)


def _where(capture: CapturePlan) -> dict[str, Any]:
    return {key: value for key, value in asdict(capture).items() if key not in {"in_parts", "wire"}}


def run_json(name: str, scenario: Scenario, plan: Plan) -> dict[str, Any]:
    """run.json, schema 2."""
    processes = [
        {
            "name": p.name,
            "host": p.host,
            "pid": 100 + i,
            "exit": {"code": 0, "signal": None, "time_ns": ZERO_NS, "expected": True},
        }
        for i, p in enumerate(plan.processes)
    ]
    if scenario.crashed:
        processes[3]["exit"] = {"code": None, "signal": 9, "time_ns": ZERO_NS, "expected": False}
        processes[4]["exit"] = None
    applied = [
        {
            "index": index,
            "requested_ns": ZERO_NS + c.at_us * 1000,
            "applied_ns": ZERO_NS + c.at_us * 1000 + 2_000_000,
        }
        for index, c in enumerate(plan.changes)
        if isinstance(c, LinkChange)
    ]
    return {
        "schema": 2,
        "run": name,
        "experiment": {
            "name": scenario.experiment,
            "description": scenario.description,
            "paper": scenario.paper,
            "topology": "four-regions",
            "system": "sprinkler",
            "workload": {"event_size": "10B", "rate": "20000/s"},
        },
        "topology": {"name": "four-regions", "description": "Four regions in a full mesh."},
        "plan": plan_to_json(plan),
        "seed": 1,
        "links": "relay",
        "commit": "6ec5573c0ffee",
        "versions": {
            "python": "3.11.7",
            "cutset": "0.1.0",
            "kernel": "6.12.1",
            "mininet": "2.3.0",
            "tcpdump": "4.99.3",
        },
        "machine": {"cpus": 2, "memory_bytes": 25276502016},
        "tcp": {"congestion_control": "bbr"},
        "phase": "running" if scenario.crashed else "collected",
        "outcome": "crashed" if scenario.crashed else "completed",
        "problems": [
            *scenario.problems,
            *(["r0/client-1 was killed by signal 9"] if scenario.crashed else []),
        ],
        "times": {
            "started_ns": ZERO_NS - 3_000_000_000,
            "zero_ns": ZERO_NS,
            "stopped_ns": ZERO_NS + 60_000_000_000,
            "drained_ns": None if scenario.crashed else ZERO_NS + 60_400_000_000,
            "ended_ns": ZERO_NS + 62_000_000_000,
        },
        "changes": [] if scenario.crashed else applied,
        "processes": processes,
        "captures": [
            {**_where(c), "packets": 210_345, "kernel_drops": 0 if scenario.valid else 17}
            for c in plan.captures
        ],
        "probes": [
            {"when": w, "from": "r0", "to": "r1", "rtt_us": [34100, 34250]} for w in ("before", "after")
        ],
        "counters": [],
        "cpu": [{"t_ns": ZERO_NS + i * 1_000_000_000, "busy": 0.34} for i in range(60)],
    }


def summary_json(name: str, scenario: Scenario) -> dict[str, Any]:
    """summary.json, schema 1."""
    crashed = scenario.crashed
    published = int(scenario.rate_per_s * scenario.duration_s * len(scenario.regions))
    worst = max(scenario.switched_s, key=lambda origin: scenario.switched_s[origin])
    disturbed = scenario.fault and not crashed
    switch_s = scenario.switched_s[worst] - scenario.cut_s
    reasons = [] if scenario.valid else ["r2-r3@r2.pcap: the kernel dropped 17 packets"]
    reasons += ["the run ended in phase running"] if crashed else []
    verdict = "crashed" if crashed else "passed" if scenario.valid else "invalid"
    return {
        "schema": 1,
        "run": name,
        "experiment": scenario.experiment,
        "seed": 1,
        "links": "relay",
        "verdict": verdict,
        "fidelity": {
            "valid": scenario.valid and not crashed,
            "reasons": reasons,
            "notes": [],
            "links": []
            if crashed
            else [
                {"link": "r2-r3", "delay_ms": 15.0, "delay_p50_ms": 15.1, "delay_p99_ms": 15.6, "loss": 0.0}
            ],
            "capture_drops": 0 if scenario.valid else 17,
            "cpu_max": None if crashed else 0.41,
        },
        "events": _unless(
            crashed,
            published=published,
            delivered=published * 8,
            **dict.fromkeys(("lost", "duplicated", "out_of_order", "corrupted"), 0),
        ),
        "throughput": _unless(crashed, events_per_s=79_987.2, bytes_per_s=799_872.0),
        "latency": _unless(crashed, mean_ms=49.0, p50_ms=48.2, p95_ms=51.7, p99_ms=812.4, max_ms=1011.3),
        "faults": [
            {
                "name": n,
                "kind": n,
                "target": "-".join(scenario.cut_ends),
                "requested_s": s,
                "applied_s": s + 0.002,
            }
            for n, s in (("cut", scenario.cut_s), ("restore", scenario.restore_s))
        ]
        if disturbed
        else [],
        "agreement": {"held": None if crashed else True, "compared": 32, "disagreements": [], "left_out": []},
        "recovery": {
            "cut": recovered(scenario, worst)
            | dict.fromkeys(("lost", "duplicated", "out_of_order"), 0)
            | {
                "affected_pairs": 4,
                "first_route_s": min(scenario.switched_s.values()) - scenario.cut_s,
                "impaired": 8 * round(switch_s * scenario.rate_per_s),
            }
        }
        if disturbed
        else {},
        "convergence": {
            "last_change_s": scenario.restore_s if scenario.fault else 0.0,
            "connected": True,
            **_unless(crashed, full_s=0.212, median_s=0.05, beyond_way_s=0.127, wait_max_s=0.3),
            **_unless(crashed, stalled=0, late_switches=0),
        },
        "expectations": [
            {
                "text": "events.lost == 0",
                "value": None if crashed else 0,
                "held": not crashed,
                "unproven": [] if scenario.valid else ["link r0-r1 forward: 9 packets are too few to tell"],
            },
            {"text": "events.duplicated == 0", "value": None if crashed else 0, "held": not crashed},
            {
                "text": "recovery.cut.switch_s <= 2",
                "value": switch_s if disturbed else None,
                "held": disturbed,
            },
        ],
    }


def _unless(unknown: bool, **figures: float) -> dict[str, float | None]:
    """Return the figures, or nulls in their place."""
    return dict.fromkeys(figures) if unknown else dict(figures)
