"""Records of small runs, and run.json changed by hand, as tests need it."""

from dataclasses import replace
from typing import Any

from experiments.planned.changes import (
    LinkChange,
    LinkDirectionName,
    LinkState,
    ProcessAction,
    ProcessChange,
)
from experiments.planned.plan import (
    CapturePlan,
    FaultPlan,
    HostPlan,
    LinkPlan,
    Plan,
    ProcessPlan,
    RegionPlan,
    StreamPlan,
)
from experiments.records.json_files import read_json, write_json
from experiments.records.observations import (
    CaptureRecord,
    ChangeRecord,
    MachineShare,
    ProcessExit,
    ProcessRecord,
)
from experiments.records.run_record import Outcome, RunPhase, RunRecord, Times, record_to_json
from experiments.records.rundir import RunDirectory
from topologies.link_parameters import LinkParameters

SMALL = Plan("small", "sprinkler", {}, {}, 1, 1_000_000, 0, "auto", None, None, (), (), (), (), (), (), ())
"""A plan of nothing."""
ZERO_NS = 1_700_000_000_000_000_000


def set_run(run: RunDirectory, **fields: Any) -> dict[str, Any]:
    """Set fields of run.json, as JSON; of a run that has none, those of a run that has not begun."""
    there = run.run_json.exists()
    content = (read_json(run.run_json) if there else record_to_json(RunRecord(SMALL))) | fields
    write_json(run.run_json, content)
    return content


def little_run() -> RunRecord:
    """Return a run of two regions with one process each, a link cut and a killed process."""
    regions = ("r0", "r1")
    shape = LinkParameters(delay_us=15_000)
    plan = replace(
        SMALL,
        workload={"event_size_bytes": 10, "collect": {"predicate": "last", "argument": 5}},
        regions=tuple(RegionPlan(name, f"10.{n}.0.0/16", f"{name}-gw") for n, name in enumerate(regions)),
        hosts=tuple(
            HostPlan(f"{name}-proxy-0", name, "proxy", 0, f"10.{n}.0.2", "") for n, name in enumerate(regions)
        ),
        links=(LinkPlan("r0-r1", "wan", "r0", "r1", shape, shape),),
        processes=tuple(
            ProcessPlan(f"{name}/proxy-0", f"{name}-proxy-0", name, "proxy", 0, 1) for name in regions
        ),
        captures=(CapturePlan("r0-proxy-0-eth0.pcap", host="r0-proxy-0"),),
        faults=(FaultPlan("cut", "cut", "r0-r1", 500_000), FaultPlan("kill", "kill", "r1/proxy-0", 600_000)),
        changes=(
            LinkChange(500_000, "cut", "r0-r1", LinkDirectionName.FORWARD, LinkState.BLACKHOLE, shape),
            ProcessChange(600_000, "kill", "r1/proxy-0", ProcessAction.KILL),
        ),
        streams=tuple(StreamPlan(n, name, name, (name,)) for n, name in enumerate(regions)),
    )
    return RunRecord(
        plan,
        run="a-run",
        experiment={"name": "small", "expect": ["events.lost == 0"]},
        phase=RunPhase.COLLECTED,
        outcome=Outcome.COMPLETED,
        times=Times(started_ns=ZERO_NS - 10**9, zero_ns=ZERO_NS, ended_ns=ZERO_NS + 10**9),
        changes=(ChangeRecord(0, ZERO_NS + 1, ZERO_NS + 2), ChangeRecord(1, ZERO_NS + 3, None)),
        processes=(
            ProcessRecord("r0/proxy-0", "r0-proxy-0", 7, ProcessExit(0, None, ZERO_NS + 5, expected=True)),
        ),
        captures=(
            CaptureRecord("captures/r0-proxy-0-eth0.pcap", host="r0-proxy-0", packets=7, kernel_drops=0),
        ),
        machines=(MachineShare("h0", ("r0-proxy-0",), ZERO_NS), MachineShare("h1", ("r1-proxy-0",), ZERO_NS)),
    )
