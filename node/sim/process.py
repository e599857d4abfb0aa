"""A simulated process: its machine, its state, its records and its log."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from node.core import machine as m
from node.core.specification import NodeSpec
from node.core.wrong_clock import WrongClock
from node.sim.pipe import Pipe


@dataclass(slots=True, eq=False)
class Node:
    """One process. While it is stopped it takes nothing; its inputs wait in order."""

    spec: NodeSpec
    machine: m.Machine
    ahead_us: int = 0  # how far its clock is ahead of virtual time
    wrong: WrongClock | None = None  # its clock, if it is also wrong
    ready: bool = False
    finished: bool = False
    listening: int | None = None
    stopped: bool = False
    waiting: list[tuple["End | None", m.Input, int]] = field(default_factory=list)
    timers: dict[m.Timer, int] = field(default_factory=dict)  # name -> serial of its latest setting
    ends: dict[int, "End"] = field(default_factory=dict)
    logs: list[tuple[int, m.Log]] = field(default_factory=list)
    records: list[tuple[int, m.Record]] = field(default_factory=list)
    measures: list[tuple[int, m.Measure]] = field(default_factory=list)

    def shows_us(self, now_us: int) -> int:
        """Return what its clock shows at this virtual time."""
        right_us = now_us + self.ahead_us
        return right_us if self.wrong is None else self.wrong.shows(right_us)

    def due_us(self, shown_us: int) -> int:
        """Return the virtual time at which its clock shows this."""
        right_us = shown_us if self.wrong is None else self.wrong.right_us(shown_us)
        return right_us - self.ahead_us


@dataclass(slots=True, eq=False)
class End:
    """One end of a connection. `open` until it was closed from this side, or the other's close arrived.

    dialled: at the end that dialled, until the answer arrives, the requested peer. held: inputs, with sizes,
    that arrived while this end is not read; None while it is read.
    """

    node: Node
    number: int
    outward: Pipe = field(init=False)
    other: "End" = field(init=False)
    open: bool = True
    dialled: str | None = None
    held: list[tuple[m.Input, int]] | None = None


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """A message that was sent on a connection."""

    time_us: int
    source: str
    target: str
    message: Any


@dataclass(frozen=True, slots=True)
class Observer:
    """Receives nodes' records, log lines and measures, and is notified when they are ready and finished."""

    record: Callable[[Node, int, m.Record], None]
    log: Callable[[Node, int, m.Log], None]
    measure: Callable[[Node, int, m.Measure], None]
    ready: Callable[[Node], None]
    finished: Callable[[Node], None]


RETAINING_OBSERVER = Observer(
    lambda node, time_us, record: node.records.append((time_us, record)),
    lambda node, time_us, line: node.logs.append((time_us, line)),
    lambda node, time_us, measure: node.measures.append((time_us, measure)),
    ready=lambda _: None,
    finished=lambda _: None,
)
"""Keeps everything in the nodes' own lists."""
