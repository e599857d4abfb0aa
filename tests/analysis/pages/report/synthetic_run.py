"""Writes a run directory as the testbed and the analysis would after an inter-region link failure.

A Scenario describes the run; the tables are computed from it. Nothing is started, no Spark, no packets.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.timelines import schemas
from experiments.planned.plan import Plan
from experiments.records.run_record import record_from_json
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.report_scenario import DEFAULT, ZERO_NS, Scenario
from tests.analysis.pages.report.synthetic_tables import fidelity, latency, recovered, recovery, throughput
from tests.analysis.pages.report.synthetic_transfers import write_transfers
from tests.analysis.timelines import world


def write_run(parent: Path, scenario: Scenario = DEFAULT) -> RunDirectory:
    """Write a complete run directory below `parent`."""
    name = f"20260101T000000Z-{''.join(c for c in scenario.experiment if c.isalnum() or c == '-')}-0a1b2c"
    (parent / name).mkdir(parents=True)
    directory = RunDirectory(parent / name)
    content = run_json(name, scenario)
    plan = record_from_json(content).plan
    directory.run_json.write_text(json.dumps(content))
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
    """Return the plan of that run."""
    return record_from_json(run_json("a-run", scenario)).plan


def run_json(name: str, scenario: Scenario) -> dict[str, Any]:
    """run.json of the experiment link-failure with the scenario's faults and names."""
    cuts = [("cut", scenario.cut_s, "r2-r3"), ("restore", scenario.restore_s, "r2-r3")]
    faults = [(kind, kind, at_s, link) for kind, at_s, link in cuts if scenario.fault]
    faults += [(f"cut-{link}", "cut", at_s, link) for link, at_s in scenario.more_cuts]
    texts = [
        f"{{name: {named}, at: {at_s}s, {kind}: [{link.replace('-', ', ')}]}}"
        for named, kind, at_s, link in faults
    ]
    content = world.run_json(
        f"duration={scenario.duration_s}s",
        f"faults=[{', '.join(texts)}]",
        f"captures.where={'[hosts, gateways]' if scenario.captures else '[]'}",
        "expect=[]",
        run=name,
        commit="6ec5573c0ffee",
        versions={"python": "3.11.7", "cutset": "0.1.0", "kernel": "6.12.1", "mininet": "2.3.0"},
        machine={"cpus": 2, "memory_bytes": 25276502016},
        tcp={"congestion_control": "bbr"},
        phase="running" if scenario.crashed else "collected",
        outcome="crashed" if scenario.crashed else "completed",
        problems=[*scenario.problems, *(["r0/client-1 was killed by signal 9"] if scenario.crashed else [])],
        probes=[{"when": w, "from": "r0", "to": "r1", "rtt_us": [34100, 34250]} for w in ("before", "after")],
        topology={"name": "four-regions", "description": "Four regions in a full mesh."},
    )
    content["experiment"] = {
        "name": scenario.experiment,
        "description": scenario.description,
        "paper": scenario.paper,
        "topology": "four-regions",
        "system": "sprinkler",
        "workload": {"event_size": "10B", "rate": "20000/s"},
    }
    content["times"] |= {"stopped_ns": ZERO_NS + 60 * 10**9, "ended_ns": ZERO_NS + 62 * 10**9}
    content["times"]["drained_ns"] = None if scenario.crashed else ZERO_NS + 60_400_000_000
    content["changes"] = [
        each | {"applied_ns": each["applied_ns"] + 2_000_000}
        for each in content["changes"]
        if not scenario.crashed
    ]
    for capture in content["captures"]:
        capture |= {"packets": 210_345, "kernel_drops": 0 if scenario.valid else 17}
    for link in content["plan"]["links"]:
        if link["kind"] == "wan":
            for way in ("forward", "backward"):
                link[way]["rate_bits_per_s"] = scenario.link_rate_bits_per_s
    if scenario.crashed:
        content["processes"][3]["exit"] |= {"code": None, "signal": 9, "expected": False}
        content["processes"][4]["exit"] = None
    content["plan"] |= {"experiment": scenario.experiment, "links_kind": "auto"}
    return content | {
        "plan": _renamed(content["plan"], dict(zip(DEFAULT.regions, scenario.regions, strict=True)))
    }


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Return part of a plan with other names of regions."""
    if isinstance(value, dict):
        return {_renamed(key, names): _renamed(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    return re.sub(r"\br[0-3]\b", lambda found: names[found[0]], value) if isinstance(value, str) else value


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
