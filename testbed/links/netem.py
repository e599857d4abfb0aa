"""The netem link emulator: bridges whose ports carry the kernel's own delay, loss and rate.

`netem_commands` explains how links are built and why. This module executes the commands, applies changes and
adds up the queueing disciplines' counters. The kernel does the work, so there is no process that could die
and no lateness to measure. If links follow traces, a thread changes them at every step; their lateness is
that of these changes.

netem counts all its drops in one number. They count as losses while loss is configured, and as queue drops
otherwise. On a link with both, the losses include the queue's drops.
"""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.planned.changes import LinkDirectionName
from experiments.records.observations import LinkCounters
from testbed.batches import COMMAND_TIMEOUT_S, run_batch
from testbed.errors import TestbedError
from testbed.links.abilities import NOT_IN_NETEM, lacking
from testbed.links.emulator import Applied, SelectedPackets
from testbed.links.netem_commands import (
    NetemLink,
    Stages,
    delay_options,
    in_step,
    is_limited,
    limit_options,
    mtu_lines,
    netem_line,
    netem_link,
    next_step_us,
    offload_lines,
    stage_seed,
    table_name,
    table_text,
    unwire_lines,
    wire_lines,
)
from testbed.links.wiring import LinkWiring
from testbed.sandbox.passing_mount import passing_mount
from testbed.steady_clock import steady_clock
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace

HANDLES = (1, 2)  # alternate handles of a stage's netem
OTHER = {
    LinkDirectionName.FORWARD: LinkDirectionName.BACKWARD,
    LinkDirectionName.BACKWARD: LinkDirectionName.FORWARD,
}
_NOTHING = {"packets": 0, "bytes": 0, "drops": 0, "qlen": 0}

Readings = Mapping[str, Mapping[str, int]]
"""The counters of netems, by interface."""


@dataclass(slots=True)
class _DirectionState:
    """The current state of one link direction, and its counters so far."""

    stages: Stages
    parameters: LinkParameters
    trace: LinkTrace | None = None
    blackhole: bool = False
    limit_handle: int = HANDLES[0]
    delay_handle: int = HANDLES[0]
    read: dict[str, Mapping[str, int]] = field(default_factory=dict)  # the last readings, by interface
    frames: int = 0
    bytes: int = 0
    dropped_loss: int = 0
    dropped_queue: int = 0
    dropped_blackhole: int = 0
    late_us: list[float] = field(default_factory=list)  # lateness of each step of its trace

    def settle(self, readings: Readings) -> None:
        """Add the difference since the last reading to the counters of the current state."""
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
            self.dropped_loss += at_limit if self.parameters.loss > 0 else 0
            self.dropped_queue += before_limit + (0 if self.parameters.loss > 0 else at_limit)

    def drop_in_flight(self, interface: str) -> None:
        """Count the packets that the netem of this interface held when it was replaced."""
        self.dropped_blackhole += self.read[interface]["qlen"]
        del self.read[interface]


class NetemEmulator:
    """Emulates all links of a run in the kernel. The methods may be called from several threads."""

    kind = "netem"

    def __init__(self, seed: int | None = None) -> None:
        """seed: makes losses and jitter repeatable; None if tc or the kernel does not support seeds."""
        self._seed = seed
        self._changes = 0
        self._links: list[NetemLink] = []
        self._states: dict[tuple[str, LinkDirectionName], _DirectionState] = {}
        self._lock = threading.Lock()
        self._zero_ns: int | None = None
        self._clock_ns: Callable[[], int] = time.time_ns  # until time 0
        self._stepping: threading.Thread | None = None
        self._stopped = threading.Event()
        self._failure: str | None = None
        self._stack = ExitStack()
        self._tables: Path | None = None  # the folder of tables of jitter

    def start(self, wirings: Sequence[LinkWiring]) -> None:
        """Wire every link and configure its netems, in the caller's network namespace."""
        self._links = [netem_link(number, wiring) for number, wiring in enumerate(wirings)]
        for link in self._links:
            for direction, parameters in link.wiring.parameters.items():
                self._states[link.wiring.name, direction] = _DirectionState(
                    link.stages(direction), parameters, link.wiring.traces.get(direction)
                )
        wiring_lines = [line for link in self._links for line in wire_lines(link)]
        run_batch("ip", wiring_lines, doing="wiring the links")
        qdisc_lines = [
            line
            for state in self._states.values()
            for line in self._lines(state, state.parameters, limit="add", delay="add")
        ]
        self._tc(qdisc_lines, doing="configuring netem")

    def change(
        self,
        link: str,
        direction: LinkDirectionName,
        parameters: LinkParameters,
        *,
        blackhole: bool,
        selects: SelectedPackets | None = None,
    ) -> Applied:
        """See `LinkEmulator`."""
        requested_ns = time.time_ns()
        with self._lock:
            if (link, direction) not in self._states:
                raise TestbedError(f"changing the link {link}: there is no such link")
            if words := next(lacking(parameters, NOT_IN_NETEM), None):
                raise TestbedError(
                    f"changing the link {link}: netem does not implement {words}, --links relay does"
                )
            state, doing = self._states[link, direction], f"changing the link {link}"
            self._changes += 1
            state.settle(_read(state.stages))
            (wired,) = (each for each in self._links if each.wiring.name == link)
            if parameters.mtu_bytes < wired.wiring.parameters[direction].mtu_bytes:
                parameters = replace(parameters, icmp_dropped=True)
            if parameters.mtu_bytes != state.parameters.mtu_bytes:
                other = self._states.get((link, OTHER[direction]))
                both = (parameters, parameters if other is None else other.parameters)
                run_batch("ip", mtu_lines(wired, *both), doing=doing)
            if is_limited(parameters) != is_limited(state.parameters):
                run_batch("ip", offload_lines(state.stages, parameters), doing=doing)
            if blackhole and not state.blackhole:
                self._cut(state, parameters, doing)
            elif state.blackhole and not blackhole:
                self._heal(state, parameters, doing)
            else:
                self._tc(self._lines(state, parameters, blackhole=blackhole), doing=doing)
            applied_ns = time.time_ns()
            if state.blackhole and not blackhole:
                state.settle(_read(state.stages))  # count the drops until now as the blackhole's
            state.parameters, state.blackhole = parameters, blackhole
            return Applied(requested_ns, applied_ns)

    def begin_traces(self, zero_ns: int) -> None:
        """See `LinkEmulator`."""
        self._zero_ns, self._clock_ns = zero_ns, steady_clock()
        if any(state.trace for state in self._states.values()):
            self._stepping = threading.Thread(target=self._follow_traces, daemon=True)
            self._stepping.start()

    def _follow_traces(self) -> None:
        """Change the links at each step of their traces, until `stop`."""
        assert self._zero_ns is not None, "traces begin before they are followed"
        with self._lock:
            traced = {key: state.trace for key, state in self._states.items() if state.trace is not None}
        due_us = {key: self._since_zero_us() for key in traced}
        try:
            while True:
                at_us = min(due_us.values())
                if self._stopped.wait(max(0.0, (at_us - self._since_zero_us()) / 1e6)):
                    return
                now_us = max(at_us, self._since_zero_us())
                due = [key for key, its_us in due_us.items() if its_us <= now_us]
                self._step([self._states[key] for key in due], now_us)
                for key in due:
                    self._states[key].late_us.append(self._since_zero_us() - due_us[key])
                    due_us[key] = next_step_us(traced[key], now_us)
        except (TestbedError, OSError) as error:
            self._failure = f"the links no longer follow their traces: {error}"

    def _since_zero_us(self) -> int:
        return 0 if self._zero_ns is None else (self._clock_ns() - self._zero_ns) // 1000

    def _step(self, states: Sequence[_DirectionState], now_us: int) -> None:
        """Bring directions to the current step of their traces; cut directions stay cut."""
        with self._lock:
            lines: list[str] = []
            for state in states:
                if not state.blackhole and not self._stopped.is_set():
                    self._changes += 1
                    lines += self._lines(state, state.parameters, now_us=now_us)
            if lines:
                self._tc(lines, doing="following the links' traces")

    def _cut(self, state: _DirectionState, parameters: LinkParameters, doing: str) -> None:
        """Drop all frames from now on. The limit stage is changed first, so that no more frames leave."""
        replace = state.read[state.stages.limit]["qlen"] > 0 or state.parameters.rate_bits_per_s is not None
        if replace:
            state.limit_handle = _other(state.limit_handle)
        action = "replace" if replace else "change"
        self._tc(self._lines(state, parameters, limit=action, blackhole=True), doing=doing)
        if replace:
            state.drop_in_flight(state.stages.limit)

    def _heal(self, state: _DirectionState, parameters: LinkParameters, doing: str) -> None:
        """Forward frames again, except those in flight since before the cut."""
        replace = state.read[state.stages.delay]["qlen"] > 0
        if replace:
            state.delay_handle = _other(state.delay_handle)
        at_limit, at_delay = self._lines(state, parameters, delay="replace" if replace else "change")
        self._tc((at_delay, at_limit), doing=doing)
        if replace:
            state.drop_in_flight(state.stages.delay)

    def _lines(
        self,
        state: _DirectionState,
        parameters: LinkParameters,
        *,
        limit: str = "change",
        delay: str = "change",
        blackhole: bool = False,
        now_us: int | None = None,
    ) -> tuple[str, str]:
        """Return the lines for both stages. limit, delay: the action at each stage, see `netem_line`."""
        now, hold_us = self._in_step(state, parameters, now_us)
        if now.jitter_us:
            self._write_table(now.jitter_quantiles)
        stages = (
            (
                limit,
                state.stages.limit,
                state.limit_handle,
                limit_options(now, blackhole=blackhole, hold_us=hold_us),
            ),
            (delay, state.stages.delay, state.delay_handle, delay_options(now, blackhole=blackhole)),
        )
        at_limit, at_delay = (
            netem_line(action, interface, handle, options, self._stage_seed(interface))
            for action, interface, handle, options in stages
        )
        return at_limit, at_delay

    def _in_step(
        self, state: _DirectionState, parameters: LinkParameters, now_us: int | None
    ) -> tuple[LinkParameters, int]:
        """See `in_step`. now_us: since the traces began; None means now."""
        if self._zero_ns is None:
            return parameters, 0
        return in_step(parameters, state.trace, self._since_zero_us() if now_us is None else now_us)

    def _stage_seed(self, interface: str) -> int | None:
        return None if self._seed is None else stage_seed(self._seed, interface, self._changes)

    def _tc(self, lines: Sequence[str], *, doing: str) -> None:
        """Run `tc -batch` with the tables of all distributions of jitter in use (TC_LIB_DIR, tc-netem(8))."""
        run_batch(
            "tc", lines, doing=doing, env=None if self._tables is None else {"TC_LIB_DIR": str(self._tables)}
        )

    def _write_table(self, quantiles: tuple[float, ...]) -> None:
        """Write the table of a distribution for tc, unless it is there."""
        if self._tables is None:
            with passing_mount() as folder:
                handle = os.open(folder, os.O_PATH)
            self._stack.callback(os.close, handle)
            self._tables = Path(f"/proc/{os.getpid()}/fd/{handle}")
        path = self._tables / f"{table_name(quantiles)}.dist"
        if not path.exists():
            path.write_text(table_text(quantiles))

    def counters(self) -> Mapping[tuple[str, LinkDirectionName], LinkCounters]:
        """See `LinkEmulator`."""
        with self._lock:
            readings = _read(*(state.stages for state in self._states.values()))
            for state in self._states.values():
                state.settle(readings)
            return {
                key: LinkCounters(
                    frames=state.frames,
                    bytes=state.bytes,
                    dropped_loss=state.dropped_loss,
                    dropped_queue=state.dropped_queue,
                    dropped_blackhole=state.dropped_blackhole,
                    dropped_kernel=0,
                    lateness_p50_us=_percentile(state.late_us, 50),
                    lateness_p99_us=_percentile(state.late_us, 99),
                )
                for key, state in self._states.items()
            }

    def failure(self) -> str | None:
        """Return why links no longer follow their traces, or None. The links last as long as the sandbox."""
        return self._failure

    def stop(self) -> None:
        """Remove bridges and veth pairs, but not the links' ends, which belong to the network."""
        self._stopped.set()
        if self._stepping is not None:
            self._stepping.join()
        with self._lock:
            emulator, self._links = self._links, []
            self._states = {}
            self._stack.close()
            run_batch("ip", unwire_lines(emulator), doing="removing the links")


def _percentile(late_us: Sequence[float], percent: int) -> float | None:
    """Return the percentile by nearest rank; None without values."""
    return sorted(late_us)[-(-len(late_us) * percent // 100) - 1] if late_us else None


def _other(handle: int) -> int:
    return HANDLES[1] if handle == HANDLES[0] else HANDLES[0]


def _read(*stages: Stages) -> Readings:
    """Read the counters of these netems (`tc -s -j qdisc show`)."""
    command = ["tc", "-s", "-j", "qdisc", "show"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    if result.returncode != 0:
        raise TestbedError(f"reading the links' counters: {' '.join(result.stderr.split())}")
    found: list[dict[str, Any]] = json.loads(result.stdout or "[]")
    netems = {row["dev"]: row for row in found if row["kind"] == "netem"}
    wanted = [interface for stage in stages for interface in (stage.limit, stage.delay)]
    for interface in wanted:
        if interface not in netems:
            raise TestbedError(f"reading the links' counters: {interface} no longer has a netem")
    return {name: {key: int(netems[name][key]) for key in _NOTHING} for name in wanted}
