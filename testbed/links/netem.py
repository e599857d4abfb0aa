"""The netem kind of middle: bridges whose ports carry the kernel's own delay, loss and rate.

What it is made of, and why, stands in `netem_commands`; here the lines are executed, changes are put into
effect, and the queueing disciplines' counters are added up. The kernel does the work, so there is no process
to die and no lateness to measure.

netem counts its drops in one number. They are losses while the shape loses, and the queue's otherwise: on a
link with both, the queue's drops are among the losses.
"""

import json
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.batches import COMMAND_TIMEOUT_S, run_batch
from testbed.errors import TestbedError
from testbed.links.model import Applied, LinkCounters, LinkWiring
from testbed.links.netem_commands import (
    Middle,
    Stages,
    is_limited,
    make_middle,
    offload_lines,
    shape_lines,
    unwire_lines,
    wire_lines,
)
from testbed.plan import Direction
from topologies.shape import Shape

HANDLES = (1, 2)  # of the two netems of a direction, in turn
_NOTHING = {"packets": 0, "bytes": 0, "drops": 0, "qlen": 0}


@dataclass(slots=True)
class _Way:
    """One direction of a link as it is now, and what it has done so far."""

    stages: Stages
    shape: Shape
    handle: int = HANDLES[0]
    blackhole: bool = False
    read: dict[str, Mapping[str, int]] = field(default_factory=dict)  # by interface, since its handle's start
    frames: int = 0
    bytes: int = 0
    dropped_loss: int = 0
    dropped_queue: int = 0
    dropped_blackhole: int = 0

    def settle(self, readings: Mapping[str, Mapping[str, int]]) -> None:
        """Add what happened since the last reading to what the present shape accounts for."""
        since = {}
        for interface in (self.stages.limit, self.stages.delay):
            now, before = readings[interface], self.read.get(interface, _NOTHING)
            since[interface] = {key: now[key] - before[key] for key in ("packets", "bytes", "drops")}
            self.read[interface] = now
        self.frames += since[self.stages.limit]["packets"]
        self.bytes += since[self.stages.limit]["bytes"]
        before_limit, at_limit = since[self.stages.delay]["drops"], since[self.stages.limit]["drops"]
        if self.blackhole:
            self.dropped_blackhole += before_limit + at_limit
        else:
            self.dropped_loss += at_limit if self.shape.loss > 0 else 0
            self.dropped_queue += before_limit + (0 if self.shape.loss > 0 else at_limit)

    def renew(self) -> None:
        """The netems are new, and what the old ones held is gone."""
        self.dropped_blackhole += sum(reading["qlen"] for reading in self.read.values())
        self.read.clear()


class NetemMiddles:
    """All middles of a run, carried by the kernel. The methods may be called from several threads."""

    kind = "netem"

    def __init__(self) -> None:
        self._middles: list[Middle] = []
        self._ways: dict[tuple[str, Direction], _Way] = {}
        self._lock = threading.Lock()

    def start(self, wirings: Sequence[LinkWiring]) -> None:
        """Wire and shape every link, in the caller's network namespace."""
        self._middles = [make_middle(number, wiring) for number, wiring in enumerate(wirings)]
        for middle in self._middles:
            for direction in Direction:
                wiring = middle.wiring
                shape = wiring.forward if direction is Direction.FORWARD else wiring.backward
                self._ways[wiring.name, direction] = _Way(middle.stages(direction), shape)
        wiring_lines = [line for middle in self._middles for line in wire_lines(middle)]
        run_batch("ip", wiring_lines, doing="wiring the links")
        shaping_lines = [
            line
            for way in self._ways.values()
            for line in shape_lines("add", way.stages, way.handle, way.shape)
        ]
        run_batch("tc", shaping_lines, doing="shaping the links")

    def change(self, link: str, direction: Direction, shape: Shape, *, blackhole: bool) -> Applied:
        """See `Middles`."""
        requested_ns = time.time_ns()
        with self._lock:
            if (link, direction) not in self._ways:
                raise TestbedError(f"changing the link {link}: there is no such link")
            way = self._ways[link, direction]
            way.settle(_read((way.stages.limit, way.stages.delay)))
            if is_limited(shape) != is_limited(way.shape):
                run_batch("ip", offload_lines(way.stages, shape), doing=f"changing the link {link}")
            swallow = blackhole and not way.blackhole
            if swallow:
                way.handle = HANDLES[1] if way.handle == HANDLES[0] else HANDLES[0]
                way.renew()
            action = "replace" if swallow else "change"
            lines = shape_lines(action, way.stages, way.handle, shape, blackhole=blackhole)
            run_batch("tc", lines, doing=f"changing the link {link}")
            way.shape, way.blackhole = shape, blackhole
            return Applied(requested_ns, time.time_ns())

    def counters(self) -> Mapping[tuple[str, Direction], LinkCounters]:
        """See `Middles`."""
        with self._lock:
            interfaces = {way.stages.limit for way in self._ways.values()}
            readings = _read(interfaces | {way.stages.delay for way in self._ways.values()})
            for way in self._ways.values():
                way.settle(readings)
            return {
                key: LinkCounters(
                    frames=way.frames,
                    bytes=way.bytes,
                    dropped_loss=way.dropped_loss,
                    dropped_queue=way.dropped_queue,
                    dropped_blackhole=way.dropped_blackhole,
                    dropped_kernel=0,
                )
                for key, way in self._ways.items()
            }

    def failure(self) -> str | None:
        """Always None: what the kernel does goes on for as long as the sandbox."""
        return None

    def stop(self) -> None:
        """Remove bridges and pairs; the ends of the links are not ours."""
        with self._lock:
            middles, self._middles = self._middles, []
            self._ways = {}
            run_batch("ip", unwire_lines(middles), doing="removing the links' middles")


def _read(interfaces: Iterable[str]) -> dict[str, Mapping[str, int]]:
    """The counters of the interfaces' netems (`tc -s -j qdisc show`), by interface."""
    command = ["tc", "-s", "-j", "qdisc", "show"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    if result.returncode != 0:
        raise TestbedError(f"reading the links' counters: {' '.join(result.stderr.split())}")
    found: list[dict[str, Any]] = json.loads(result.stdout or "[]")
    wanted = set(interfaces)
    readings: dict[str, Mapping[str, int]] = {
        row["dev"]: {key: int(row[key]) for key in _NOTHING}
        for row in found
        if row["kind"] == "netem" and row["dev"] in wanted
    }
    if missing := sorted(wanted - set(readings)):
        raise TestbedError(f"reading the links' counters: {missing[0]} has no netem any more")
    return readings
