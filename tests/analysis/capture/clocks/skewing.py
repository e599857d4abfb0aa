"""Converts a run on one machine to a run on one machine per region, whose clocks differ by given offsets.

All times of a region are converted to its clock: captures, delivery records, logs, and those in run.json.
Captures of the wire between machines are added, with varying transit times. The analysis should find the same
as without the conversion.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import numpy as np

from analysis.capture.pcap.files.index import build_index
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.files.records import read_records
from analysis.capture.pcap.walk import walk
from analysis.timelines.delivery.delivery_records import RECORD
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from node.core.deliveries import HEADER, whole_bytes

Ints = np.ndarray[Any, np.dtype[np.int64]]
Offset = Callable[[Ints], Ints]
"""Returns a clock's offset from the first clock, by times of the first clock."""
HEADER_BYTES, WIRE_BYTES = 16, 128
TRANSIT_NS, JITTER_NS = 40_000, 30_000


@dataclass(frozen=True)
class Skewed:
    """The changes to a run: the clock offsets of its machines, which are named like their regions."""

    offsets: Mapping[str, Offset]

    def shown(self, machine: str, t_ns: Ints) -> Ints:
        """Return times as the machine's clock shows them."""
        return t_ns + np.rint(self.offsets[machine](t_ns)).astype(np.int64)


def set_apart(
    run: RunDirectory, offsets: Mapping[str, Offset], *, seed: int = 1, wires: bool = True
) -> Skewed:
    """Change a run in place. offsets: by region, in the order of the machines; the first's should be 0."""
    skewed, rng = Skewed(offsets), np.random.default_rng(seed)
    content = read_json(run.run_json)
    region_of = {host["name"]: host["region"] for host in content["plan"]["hosts"]}
    if wires:
        _add_wires(run, content, rng)
    for capture in content["captures"]:
        capture["machine"] = region_of.get(capture.get("host") or "", capture.get("side"))
        _move_capture(run.capture(Path(capture["file"]).name), capture["machine"], skewed)
    for host, region in region_of.items():
        _move_deliveries(run.host_deliveries(host), region, skewed)
        _move_log(run.log(host), region, skewed)
    _move_run(content, region_of, skewed)
    run.run_json.write_text(json.dumps(content))
    for index in run.captures.glob("*.index"):
        index.unlink()
    return skewed


def _add_wires(run: RunDirectory, content: dict[str, Any], rng: np.random.Generator) -> None:
    subnets = {region["name"]: ip_network(region["subnet"]) for region in content["plan"]["regions"]}
    for link in content["plan"]["links"]:
        if link["kind"] != "wan":
            continue
        name, ends = link["name"], (link["a"], link["b"])
        seen: dict[str, list[tuple[int, bytes]]] = {end: [] for end in ends}
        for sender, taker in (ends, ends[::-1]):
            low, high = int(subnets[sender][0]), int(subnets[sender][-1])
            for t_ns, record in _records(run.capture(f"{name}@{taker}.pcap")):
                if low <= int.from_bytes(record[HEADER_BYTES + 26 : HEADER_BYTES + 30]) <= high:
                    transit_ns = TRANSIT_NS + int(rng.exponential(JITTER_NS))
                    seen[taker].append((t_ns - 1_000, record))
                    seen[sender].append((t_ns - 1_000 - transit_ns, record))
        for end in ends:
            wire = {"file": f"{name}@{end}.wire.pcap", "host": None, "link": name, "side": end}
            content["plan"]["captures"].append(wire | {"interface": "t0", "wire": True})
            content["captures"].append(
                wire | {"file": f"captures/{wire['file']}", "packets": 1, "kernel_drops": 0}
            )
            with run.capture(f"{name}@{end}.pcap").open("rb") as original:
                header = original.read(24)
            _write(run.captures / str(wire["file"]), header, seen[end])


def _records(path: Path) -> list[tuple[int, bytes]]:
    """Each record's time and bytes, header included."""
    data, index = map_bytes(path), build_index(path)
    if not index.good_bytes > 24:
        return []
    at, _ = walk(data, 24, index.good_bytes, index.sections[0])
    records = read_records(data, at, index.sections[0])
    return [
        (int(t_ns), data[start : start + HEADER_BYTES + length].tobytes())
        for t_ns, start, length in zip(records.t_ns, at, records.length, strict=True)
    ]


def _write(path: Path, header: bytes, seen: list[tuple[int, bytes]]) -> None:
    parts = [header]
    for t_ns, record in sorted(seen, key=lambda one: one[0]):
        seconds, rest = divmod(t_ns, 10**9)
        length = min(len(record) - HEADER_BYTES, WIRE_BYTES)
        parts += [seconds.to_bytes(4, "little"), rest.to_bytes(4, "little"), length.to_bytes(4, "little")]
        parts += [record[12 : HEADER_BYTES + length]]
    path.write_bytes(b"".join(parts))


def _move_capture(path: Path, machine: str, skewed: Skewed) -> None:
    index = build_index(path)
    data = map_bytes(path).copy()
    if index.good_bytes <= 24:
        return
    at, _ = walk(data, 24, index.good_bytes, index.sections[0])
    t_ns = skewed.shown(machine, read_records(data, at, index.sections[0]).t_ns)
    words = np.stack((t_ns // 10**9, t_ns % 10**9), axis=1).astype("<u4")
    data[at[:, None] + np.arange(8)] = words.view(np.uint8)
    path.write_bytes(data.tobytes())


def _move_deliveries(path: Path, machine: str, skewed: Skewed) -> None:
    if not path.is_file():
        return
    content = path.read_bytes()
    end = whole_bytes(len(content))
    rows = np.frombuffer(content[HEADER.size : end], RECORD).copy()
    rows["time_ns"] = skewed.shown(machine, rows["time_ns"].astype(np.int64))
    path.write_bytes(content[: HEADER.size] + rows.tobytes() + content[end:])


def _move_log(path: Path, machine: str, skewed: Skewed) -> None:
    if not path.is_file():
        return
    lines = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        record["t_ns"] = int(skewed.shown(machine, np.array([record["t_ns"]], np.int64))[0])
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")


def _move_run(content: dict[str, Any], region_of: Mapping[str, str], skewed: Skewed) -> None:
    ways = {
        (link["name"], way): link[end]
        for link in content["plan"]["links"]
        for way, end in (("forward", "a"), ("backward", "b"))
    }
    process_host = {process["name"]: process["host"] for process in content["plan"]["processes"]}

    def shown(t_ns: int, machine: str) -> int:
        return int(skewed.shown(machine, np.array([t_ns], np.int64))[0])

    for change in content["changes"]:
        planned = content["plan"]["changes"][change["index"]]
        host = process_host.get(planned.get("process") or "")
        machine = region_of[host] if host else ways[planned["link"], planned["direction"]]
        change |= {"machine": machine}
        change |= {name: shown(change[name], machine) for name in ("requested_ns", "applied_ns")}
    for process in content["processes"]:
        process["machine"] = region_of[process_host[process["name"]]]
        process["exit"]["time_ns"] = shown(process["exit"]["time_ns"], process["machine"])
    samples = content["cpu"]
    content["cpu"] = [
        sample | {"machine": machine, "t_ns": shown(sample["t_ns"], machine)}
        for machine in skewed.offsets
        for sample in samples
    ]
    zero_ns = content["times"]["zero_ns"]
    content["machines"] = [
        {
            "name": machine,
            "hosts": [host for host, region in region_of.items() if region == machine],
            "zero_ns": shown(zero_ns, machine),
            "control_offset_ns": shown(zero_ns, machine) - zero_ns + 150_000,
            "control_error_ns": 400_000,
        }
        for machine in skewed.offsets
    ]
