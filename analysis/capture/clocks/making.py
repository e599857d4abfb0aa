"""Makes a run's clocks from its captures, and keeps them in `analysis/clocks.json`, whole or not at all.

Besides each machine's clock it says what that rests on: how many packets there and back, over which machines,
the stretches in which the clock went on as it went, and how wide the bar is.
"""

from collections.abc import Callable
from dataclasses import asdict
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import numpy as np

from analysis.capture.clocks.clock import Clock
from analysis.capture.clocks.estimate import Estimate, Reading, estimate
from analysis.capture.clocks.machines import (
    ONE_CLOCK,
    Clocks,
    Json,
    hosts_of,
    machine_of_capture,
    machines_of,
    on_reference,
    wires_of,
)
from analysis.capture.clocks.wire import End, MatchEnds
from analysis.capture.pcap.compressed import unpack
from analysis.errors import CaptureError
from analysis.jobs.work import Workers
from experiments.rundir import RunDirectory, read_json, write_json

SCHEMA = 1
EMULAB = "emulab"
MTU_BYTES = 1500
DOING = "comparing clocks"


def make_clocks(run: RunDirectory, workers: Workers, progress: Callable[[str], None]) -> Clocks:
    """The clocks of a run, anew. Raises AnalysisError if a capture cannot be worked on."""
    content = run.read_run()
    machines = machines_of(content)
    if len(machines) < 2 or not content.get("plan"):
        run.clocks.unlink(missing_ok=True)
        return ONE_CLOCK
    progress(DOING)
    met = workers.carry_out(ends_to_match(run, content), DOING)
    found = estimate(machines, met, readings(content))
    run.analysis.mkdir(exist_ok=True)
    write_json(run.clocks, {"schema": SCHEMA, "machines": [_as_json(one) for one in found.values()]})
    return _clocks(content, {name: one.clock for name, one in found.items()})


def read_clocks(run: RunDirectory, content: Json) -> Clocks:
    """The clocks that were made. Raises InputError if they cannot be read; there are none before."""
    if not machines_of(content) or not run.clocks.is_file():
        return ONE_CLOCK
    kept = read_details(run)
    return _clocks(content, {each["machine"]: Clock.from_json(each["clock"]) for each in kept})


def read_details(run: RunDirectory) -> list[dict[str, Any]]:
    """What is known of each machine's clock, as `clocks.json` keeps it; nothing where there is one clock."""
    return list(read_json(run.clocks)["machines"]) if run.clocks.is_file() else []


def read_on_reference(run: RunDirectory) -> tuple[dict[str, Any], Clocks]:
    """run.json's content with all times by the run's reference clock, and the clocks."""
    content = run.read_run()
    clocks = read_clocks(run, content)
    return on_reference(content, clocks), clocks


def _clocks(content: Json, by_machine: dict[str, Clock]) -> Clocks:
    return Clocks(hosts_of(content), by_machine)


def readings(content: Json) -> dict[str, Reading]:
    """What the control connections said of each machine's clock."""
    return {
        each["name"]: Reading(
            int(each["zero_ns"]), float(each["control_offset_ns"]), float(each["control_error_ns"])
        )
        for each in content["machines"]
        if None not in (each.get("zero_ns"), each.get("control_offset_ns"), each.get("control_error_ns"))
    }


def ends_to_match(run: RunDirectory, content: Json) -> list[MatchEnds]:
    """A task for each link between two machines whose captures can be read at both its ends."""
    ends: dict[str, list[tuple[str, End]]] = {}
    wires = wires_of(content)
    for capture in content.get("captures") or content["plan"]["captures"]:
        file, machine = Path(capture["file"]).name, machine_of_capture(capture, content)
        path = run.capture(file)
        if file not in wires or machine is None or not path.is_file():
            continue
        try:
            end = End(machine, unpack(path), _senders(capture, machine, content))
        except CaptureError:
            continue  # the table of captures says what is wrong with it
        ends.setdefault(capture["link"], []).append((capture["side"], end))
    links = {link["name"]: link for link in content["plan"]["links"]}
    return [
        _ordered(name, both, links.get(name), content)
        for name, both in ends.items()
        if len({end.machine for _, end in both}) == 2
    ]  # fmt: skip


def _ordered(name: str, both: list[tuple[str, End]], link: Json | None, content: Json) -> MatchEnds:
    """Of a link of the plan its first region's end is the near one, so that delays are there and back."""
    near, far = (end for _, end in sorted(both, key=lambda each: link is not None and each[0] != link["a"]))
    shapes = [link[way] for way in ("forward", "backward")] if link else []
    delays = (0, 0)
    if content.get("shaping") == EMULAB and shapes:
        delays = tuple((shape["delay_us"] - (shape.get("jitter_us") or 0)) * 1000 for shape in shapes)
    every = shapes or [each[way] for each in content["plan"]["links"] for way in ("forward", "backward")]
    mtu_bytes = min((shape.get("mtu_bytes") or MTU_BYTES for shape in every), default=MTU_BYTES)
    return MatchEnds(name, near, far, mtu_bytes, (delays[0], delays[1]))


def _senders(capture: Json, machine: str, content: Json) -> tuple[tuple[int, int], ...]:
    """Who sends into a link at one of its ends: a region, or the hosts on a machine where a LAN is spread."""
    plan = content["plan"]
    for region in plan["regions"]:
        if region["name"] == capture["side"]:
            subnet = ip_network(region["subnet"])
            return ((int(subnet[0]), int(subnet[-1])),)
    hosts = hosts_of(content)
    here = [int(ip_address(host["address"])) for host in plan["hosts"] if hosts.get(host["name"]) == machine]
    return tuple((address, address) for address in here)


def _as_json(one: Estimate) -> dict[str, Any]:
    bars = (one.clock.high_ns - one.clock.low_ns) / 2
    return {
        "machine": one.machine,
        "source": one.source,
        "way": list(one.way),
        "seen_there": one.seen_there,
        "seen_back": one.seen_back,
        "contradictions": one.contradictions,
        "least_used": one.least_used,
        "bar_median_ns": round(float(np.median(bars)), 1),
        "bar_max_ns": round(float(bars[1:-1].max(initial=float(np.median(bars)))), 1),
        "stretches": [asdict(stretch) for stretch in one.stretches],
        "clock": one.clock.as_json(),
    }
