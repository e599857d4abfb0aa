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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.plan import Direction
from testbed.batches import COMMAND_TIMEOUT_S, run_batch
from testbed.errors import TestbedError
from testbed.links.model import Applied, LinkCounters, LinkWiring
from testbed.links.netem_commands import (
    Middle,
    Stages,
    delay_line,
    is_limited,
    limit_line,
    make_middle,
    offload_lines,
    stage_seed,
    unwire_lines,
    wire_lines,
)
from topologies.shape import Shape

HANDLES = (1, 2)  # of a stage's netem, in turn
_NOTHING = {"packets": 0, "bytes": 0, "drops": 0, "qlen": 0}

Readings = Mapping[str, Mapping[str, int]]
"""The counters of netems, by interface."""


@dataclass(slots=True)
class _Way:
    """One direction of a link as it is now, and what it has done so far."""

    stages: Stages
    shape: Shape
    blackhole: bool = False
    limit_handle: int = HANDLES[0]
    delay_handle: int = HANDLES[0]
    read: dict[str, Mapping[str, int]] = field(default_factory=dict)  # what has been added up already
    frames: int = 0
    bytes: int = 0
    dropped_loss: int = 0
    dropped_queue: int = 0
    dropped_blackhole: int = 0

    def settle(self, readings: Readings) -> None:
        """Add what happened since the last reading to what the present state accounts for."""
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

    def swallow(self, interface: str) -> None:
        """The netem of this interface was replaced, and what it held is gone."""
        self.dropped_blackhole += self.read[interface]["qlen"]
        del self.read[interface]


class NetemMiddles:
    """All middles of a run, carried by the kernel. The methods may be called from several threads."""

    kind = "netem"

    def __init__(self, seed: int | None = None) -> None:
        """seed: makes losses and jitter repeatable; None where tc or the kernel knows no seeds."""
        self._seed = seed
        self._changes = 0
        self._middles: list[Middle] = []
        self._ways: dict[tuple[str, Direction], _Way] = {}
        self._lock = threading.Lock()

    def start(self, wirings: Sequence[LinkWiring]) -> None:
        """Wire and shape every link, in the caller's network namespace."""
        self._middles = [make_middle(number, wiring) for number, wiring in enumerate(wirings)]
        for middle in self._middles:
            for direction, shape in middle.wiring.shapes.items():
                self._ways[middle.wiring.name, direction] = _Way(middle.stages(direction), shape)
        wiring_lines = [line for middle in self._middles for line in wire_lines(middle)]
        run_batch("ip", wiring_lines, doing="wiring the links")
        shaping_lines = [
            line
            for way in self._ways.values()
            for line in (
                self._limit_line("add", way, way.shape),
                self._delay_line("add", way, way.shape),
            )
        ]
        run_batch("tc", shaping_lines, doing="shaping the links")

    def change(self, link: str, direction: Direction, shape: Shape, *, blackhole: bool) -> Applied:
        """See `Middles`."""
        requested_ns = time.time_ns()
        with self._lock:
            if (link, direction) not in self._ways:
                raise TestbedError(f"changing the link {link}: there is no such link")
            way, doing = self._ways[link, direction], f"changing the link {link}"
            self._changes += 1
            way.settle(_read(way.stages))
            if is_limited(shape) != is_limited(way.shape):
                run_batch("ip", offload_lines(way.stages, shape), doing=doing)
            if blackhole and not way.blackhole:
                self._cut(way, shape, doing)
            elif way.blackhole and not blackhole:
                self._heal(way, shape, doing)
            else:
                lines = (
                    self._limit_line("change", way, shape, blackhole=blackhole),
                    self._delay_line("change", way, shape, blackhole=blackhole),
                )
                run_batch("tc", lines, doing=doing)
            applied_ns = time.time_ns()
            if way.blackhole and not blackhole:
                way.settle(_read(way.stages))  # what was dropped until a moment ago is the blackhole's
            way.shape, way.blackhole = shape, blackhole
            return Applied(requested_ns, applied_ns)

    def _cut(self, way: _Way, shape: Shape, doing: str) -> None:
        """Lose everything from now on; the limit comes first, for then nothing leaves any more."""
        replace = way.read[way.stages.limit]["qlen"] > 0 or way.shape.rate_bits_per_s is not None
        if replace:
            way.limit_handle = _other(way.limit_handle)
        lines = (
            self._limit_line("replace" if replace else "change", way, shape, blackhole=True),
            self._delay_line("change", way, shape, blackhole=True),
        )
        run_batch("tc", lines, doing=doing)
        if replace:
            way.swallow(way.stages.limit)

    def _heal(self, way: _Way, shape: Shape, doing: str) -> None:
        """Let frames pass again, but not those that are still in flight from before."""
        replace = way.read[way.stages.delay]["qlen"] > 0
        if replace:
            way.delay_handle = _other(way.delay_handle)
        lines = (
            self._delay_line("replace" if replace else "change", way, shape),
            self._limit_line("change", way, shape),
        )
        run_batch("tc", lines, doing=doing)
        if replace:
            way.swallow(way.stages.delay)

    def _limit_line(self, action: str, way: _Way, shape: Shape, *, blackhole: bool = False) -> str:
        seed = self._drawn(way.stages.limit)
        return limit_line(action, way.stages, way.limit_handle, shape, blackhole=blackhole, seed=seed)

    def _delay_line(self, action: str, way: _Way, shape: Shape, *, blackhole: bool = False) -> str:
        seed = self._drawn(way.stages.delay)
        return delay_line(action, way.stages, way.delay_handle, shape, blackhole=blackhole, seed=seed)

    def _drawn(self, interface: str) -> int | None:
        return None if self._seed is None else stage_seed(self._seed, interface, self._changes)

    def counters(self) -> Mapping[tuple[str, Direction], LinkCounters]:
        """See `Middles`."""
        with self._lock:
            readings = _read(*(way.stages for way in self._ways.values()))
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


def _other(handle: int) -> int:
    return HANDLES[1] if handle == HANDLES[0] else HANDLES[0]


def _read(*stages: Stages) -> Readings:
    """The counters of these netems (`tc -s -j qdisc show`)."""
    command = ["tc", "-s", "-j", "qdisc", "show"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    if result.returncode != 0:
        raise TestbedError(f"reading the links' counters: {' '.join(result.stderr.split())}")
    found: list[dict[str, Any]] = json.loads(result.stdout or "[]")
    netems = {row["dev"]: row for row in found if row["kind"] == "netem"}
    wanted = [interface for stage in stages for interface in (stage.limit, stage.delay)]
    for interface in wanted:
        if interface not in netems:
            raise TestbedError(f"reading the links' counters: {interface} has no netem any more")
    return {name: {key: int(netems[name][key]) for key in _NOTHING} for name in wanted}
