"""How many events a second all clients get when drivers publish as fast as they can (paper 5.1, Fig. 4), and
what an event costs in processor time, by role.

Real processes on loopback addresses, one proxy, driver and client a region: drivers call `publish` for every
event, clients compute the CRC of all bytes. On a busy machine the rate suffers; the processor time of an
event hardly does. The same bytes copied once by plain sockets stand beside it.
"""

import socket
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from tests.bench.rows import Row, row
from tests.node.tcp.launched import Launched, launcher, loopback_specs

EVENT_BYTES = 10
PROXIES = (1, 2, 3)
WARM_S, MEASURED_S = 1.0, 2.0
COPIED_BYTES = 1 << 30
CHUNK_BYTES = 1 << 18
PARAMETERS = {
    "batch_limit_bytes": 262_144,
    "window_bytes": 524_288,
    "burst_limit_bytes": 1_048_576,
    "history_limit_bytes": 8 << 30,
}


@dataclass(frozen=True, slots=True)
class Peak:
    """events_per_s: at the slowest client. cpu_ns: of all processes of a role, for one event of the run."""

    events_per_s: float
    cpu_ns: Mapping[str, float]


def run(proxies: int, parameters: Mapping[str, Any] = PARAMETERS, measured_s: float = MEASURED_S) -> Peak:
    """One run of a closed loop."""
    with tempfile.TemporaryDirectory() as folder, launcher() as launched:
        specs = loopback_specs(Path(folder), regions=proxies, parameters=dict(parameters))
        collect = {"predicate": "last", "argument": 100_000_000}
        workload = {"event_size_bytes": EVENT_BYTES, "closed_loop": True, "collect": collect}
        for spec in specs:
            launched.start(replace(spec, workload=workload))
        launched.wait_ready(len(specs))
        roles = {spec.name: spec.role for spec in specs}
        processes = {
            message["name"]: psutil.Process(message["pid"]) for message in launched.all_said("started")
        }
        launched.go()
        _listen(launched, WARM_S)
        before, before_s, cpu_before = _delivered(launched), time.monotonic(), _cpu_s(processes)
        _listen(launched, measured_s)
        after, seconds, cpu_after = _delivered(launched), time.monotonic() - before_s, _cpu_s(processes)
        launched.drain(proxies)
        launched.finish(len(specs))
    events = min(after[name] - before[name] for name in before)
    cpu_ns: dict[str, float] = {}
    for name, role in roles.items():
        cpu_ns[role] = cpu_ns.get(role, 0.0) + (cpu_after[name] - cpu_before[name]) / events * 1e9
    return Peak(events / seconds, cpu_ns)


def _listen(launched: Launched, seconds: float) -> None:
    until = time.monotonic() + seconds
    launched.wait(lambda: time.monotonic() >= until)


def _delivered(launched: Launched) -> dict[str, int]:
    return {name: sum(by.values()) for name, by in launched.delivered.items() if by}


def _cpu_s(processes: Mapping[str, psutil.Process]) -> dict[str, float]:
    return {
        name: times.user + times.system
        for name, process in processes.items()
        for times in [process.cpu_times()]
    }


def copy_bytes_per_s() -> float:
    """Bytes a second from one plain socket to another over the loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
    with sender, receiver:
        chunk = bytes(CHUNK_BYTES)
        began_s = time.monotonic()
        thread = threading.Thread(
            target=lambda: [sender.sendall(chunk) for _ in range(COPIED_BYTES // CHUNK_BYTES)]
        )
        thread.start()
        left, buffer = COPIED_BYTES, bytearray(CHUNK_BYTES)
        while left:
            left -= receiver.recv_into(buffer)
        seconds = time.monotonic() - began_s
        thread.join()
    return COPIED_BYTES / seconds


def measure() -> list[Row]:
    """Rows for `make bench`."""
    rows: list[Row] = []
    copied = copy_bytes_per_s()
    for proxies in PROXIES:
        peak = run(proxies)
        hops = 2 * proxies  # of an event: to its proxy, to the other proxies, to all clients
        name = f"{proxies} proxies" if proxies > 1 else "1 proxy"
        rows += [
            row(
                f"{name}, at the slowest client",
                peak.events_per_s,
                "events/s",
                10_000_000 if proxies == PROXIES[-1] else None,
            ),
            row(
                (
                    f"{name}, processor time "
                    + ", ".join(f"{role} {ns:.0f}" for role, ns in peak.cpu_ns.items())
                ),
                sum(peak.cpu_ns.values()),
                "ns/event",
            ),
            row(
                f"{name}, bytes over sockets / one plain copy",
                peak.events_per_s * EVENT_BYTES * hops / copied,
                "",
            ),
        ]
    return rows
