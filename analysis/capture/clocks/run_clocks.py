"""Estimates a run's clocks from its captures and writes them atomically to `analysis/clocks.json`.

The file holds each machine's clock and its evidence: the number of packets in each direction, the path of
machines, the stretches in which the clock ran steadily, and the error bound. `machine_clocks` reads it.

This module also derives the notes about clocks and the figures of the summary from the file's content.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from ipaddress import ip_address, ip_network
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.clocks.estimate import CONTROL, NOTHING, PACKETS, ControlReading, Estimate, estimate
from analysis.capture.clocks.machine_clocks import ONE_CLOCK, MachineClocks, machine_of_capture
from analysis.capture.clocks.wire import LinkEnd, MatchEnds
from analysis.capture.pcap.files.compressed import unpack
from analysis.errors import CaptureError
from analysis.jobs.work import Workers
from analysis.timelines.schemas import CLOCKS
from experiments.planned.plan import LinkPlan
from experiments.records.json_files import write_json
from experiments.records.observations import CaptureRecord
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory

SCHEMA = 1
EMULAB = "emulab"
MTU_BYTES = 1500
DOING = "comparing clocks"


def make_clocks(
    run: RunDirectory, record: RunRecord, workers: Workers, progress: Callable[[str], None]
) -> MachineClocks:
    """Estimate the clocks of a run and replace `clocks.json`. Raises AnalysisError for a bad capture."""
    machines = [machine.name for machine in record.machines]
    if len(machines) < 2:
        run.clocks.unlink(missing_ok=True)
        return ONE_CLOCK
    progress(DOING)
    met = workers.execute(ends_to_match(run, record), DOING)
    found = estimate(machines, met, readings(record))
    run.analysis.mkdir(exist_ok=True)
    write_json(run.clocks, {"schema": SCHEMA, "machines": [as_entry(one) for one in found.values()]})
    return MachineClocks(record.machine_of, {name: one.clock for name, one in found.items()})


def readings(record: RunRecord) -> dict[str, ControlReading]:
    """Return the reading of each machine's clock over the control connection, where there is one."""
    return {
        each.name: ControlReading(each.zero_ns, each.control_offset_ns, each.control_error_ns)
        for each in record.machines
        if each.zero_ns is not None
        and each.control_offset_ns is not None
        and each.control_error_ns is not None
    }


def ends_to_match(run: RunDirectory, record: RunRecord) -> list[MatchEnds]:
    """Return a task for each link between two machines with a readable capture at both ends."""
    ends: dict[str, list[tuple[str, LinkEnd]]] = {}
    wires = record.wires
    for capture in record.listed_captures:
        machine, path = machine_of_capture(capture, record), run.capture(capture.name)
        if capture.name not in wires or machine is None or not path.is_file():
            continue
        try:
            end = LinkEnd(machine, unpack(path), _senders(capture, machine, record))
        except CaptureError:
            continue  # the table of captures reports the error
        ends.setdefault(capture.link or "", []).append((capture.side or "", end))
    links = {link.name: link for link in record.plan.links}
    return [
        _ordered(name, both, links.get(name), record)
        for name, both in ends.items()
        if len({end.machine for _, end in both}) == 2
    ]  # fmt: skip


def _ordered(
    name: str, both: list[tuple[str, LinkEnd]], link: LinkPlan | None, record: RunRecord
) -> MatchEnds:
    """Return the task with the end of the link's region `a` as the near one; delays are forward, backward."""
    near, far = (end for _, end in sorted(both, key=lambda each: link is not None and each[0] != link.a))
    shapes = [link.forward, link.backward] if link else []
    delays = [0, 0]
    if record.shaping == EMULAB and shapes:
        delays = [(shape.delay_us - shape.jitter_us) * 1000 for shape in shapes]
    every = shapes or [shape for each in record.plan.links for shape in (each.forward, each.backward)]
    mtu_bytes = min((shape.interface_mtu_bytes for shape in every), default=MTU_BYTES)
    return MatchEnds(name, near, far, mtu_bytes, (delays[0], delays[1]))


def _senders(capture: CaptureRecord, machine: str, record: RunRecord) -> tuple[tuple[int, int], ...]:
    """Return the senders' address ranges at one end: a region, or one machine's hosts if a LAN is spread."""
    for region in record.plan.regions:
        if region.name == capture.side:
            subnet = ip_network(region.subnet)
            return ((int(subnet[0]), int(subnet[-1])),)
    machine_of = record.machine_of
    here = [
        int(ip_address(host.address)) for host in record.plan.hosts if machine_of.get(host.name) == machine
    ]
    return tuple((address, address) for address in here)


def as_entry(one: Estimate) -> dict[str, Any]:
    """Return an estimate as clocks.json has it."""
    bars = (one.clock.high_ns - one.clock.low_ns) / 2
    same = "machine", "source", "way", "seen_there", "seen_back", "contradictions", "least_used"
    return {
        **{name: getattr(one, name) for name in same},
        "error_median_ns": round(float(np.median(bars)), 1),
        "error_max_ns": round(float(bars[1:-1].max(initial=float(np.median(bars)))), 1),
        "stretches": [asdict(stretch) for stretch in one.stretches],
        "clock": one.clock.as_json(),
    }


def clocks_table(machines: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the table of clocks from the entries of clocks.json."""
    rows = [
        {
            "clock": each["machine"],
            "source": each["source"],
            "from_ns": stretch.get("from_ns"),
            "to_ns": stretch.get("to_ns"),
            "offset_ms": _ms(stretch.get("offset_ns")),
            "error_ms": _ms(stretch.get("bar_ns")),
            "drift_ppm": stretch.get("drift_ppm"),
        }
        for each in machines
        for stretch in each["stretches"] or [{}]
    ]
    return pa.Table.from_pylist(rows, CLOCKS)


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / 1e6


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of a clock. step_ns: how far it was set ahead; None if only its rate changed."""

    t_ns: float  # by the reference clock
    step_ns: float | None
    before_ppm: float
    after_ppm: float


def changes(machine: Mapping[str, Any]) -> list[ClockChange]:
    """Return the steps and rate changes of a machine's clock that exceed the error bounds.

    A stretch also ends when only the packets' delays changed; that is not a change of the clock.
    """
    found = []
    for before, after in pairwise(machine["stretches"]):
        left = _offset_ns(before, before["to_ns"])
        step_ns = _offset_ns(after, after["from_ns"]) - left
        is_step = abs(step_ns) > max(before["bar_ns"], after["bar_ns"])
        rates = before["drift_ppm"], after["drift_ppm"]
        unsure_ppm = before["drift_error_ppm"] + after["drift_error_ppm"]
        if is_step or abs(rates[1] - rates[0]) > unsure_ppm:
            found.append(ClockChange(before["to_ns"] - left, step_ns if is_step else None, *rates))
    return found


def _offset_ns(stretch: Mapping[str, Any], t_ns: int) -> float:
    middle = (stretch["from_ns"] + stretch["to_ns"]) / 2
    return float(stretch["offset_ns"] + (t_ns - middle) * stretch["drift_ppm"] / 1e6)


def problems(machines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the reasons why times of different machines cannot be compared."""
    return [
        f"the clock of {each['machine']} is unknown: no packets in both directions and no control reading"
        for each in machines
        if each["source"] == NOTHING
    ]


def notes(machines: Sequence[Mapping[str, Any]], zero_ns: int) -> list[str]:
    """Return the caveats for figures that compare times of different machines."""
    texts = []
    for each in machines:
        name = each["machine"]
        if each["source"] == CONTROL:
            seen = each["seen_there"] or each["seen_back"]
            why = "packets went one way only" if seen else "no packets between them were captured"
            texts.append(
                f"clock of {name}: {why}, so it is known from the control connection alone: to"
                f" {each['stretches'][0]['bar_ns'] / 1e6:.3f} ms at time 0; drift adds to this error"
            )
        if not each["least_used"]:
            texts.append(f"clock of {name}: packets took less than the declared delay of the site's links")
        texts += [f"clock of {name}: {_description(change, zero_ns)}" for change in changes(each)]
    return texts


def _description(change: ClockChange, zero_ns: int) -> str:
    at = f"about {(change.t_ns - zero_ns) / 1e9:.1f} s"
    if change.step_ns is None:
        return f"its rate went from {change.before_ppm:.1f} to {change.after_ppm:.1f} ppm {at}"
    way = "ahead" if change.step_ns > 0 else "back"
    return f"it was set {way} by {abs(change.step_ns) / 1e6:.3f} ms {at}"


def summary(machines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures of summary.json: offset and rate in the longest stretch, and the error bound."""
    found = []
    for each in machines:
        stretch = max(each["stretches"], key=lambda one: one["to_ns"] - one["from_ns"], default=None)
        known_ppm = None if stretch is None else round(stretch["drift_ppm"], 3)
        found.append(
            {
                "machine": each["machine"],
                "from": each["source"],
                "offset_ms": None if stretch is None else round(stretch["offset_ns"] / 1e6, 6),
                "drift_ppm": known_ppm if each["source"] == PACKETS else None,
                "error_ms": round(each["error_median_ns"] / 1e6, 6),
                "error_max_ms": round(each["error_max_ns"] / 1e6, 6),
                "packets": each["seen_there"] + each["seen_back"],
                "changes": len(changes(each)),
            }
        )
    return found
