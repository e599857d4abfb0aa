"""What each direction of each WAN link was configured to do, period by period, as the faults changed it.

The plan says what every change means and run.json when it held; the k-th change that a fault made to a
direction in the one is the k-th in the other. A change that could not be carried out begins no period.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

Json = Mapping[str, Any]
Way = tuple[str, str]
"""A link's name and one of its directions, "forward" or "backward"."""


@dataclass(frozen=True, slots=True)
class Period:
    """A direction's configuration from `start_ns` until `end_ns` (None: since ever, to the end)."""

    start_ns: int | None
    end_ns: int | None
    state: str
    delay_us: int
    jitter_us: int
    loss: float
    rate_bits_per_s: int | None
    queue_packets: int | None
    mtu_bytes: int
    reorder: bool = False

    def like(self, other: "Period") -> bool:
        """Whether the direction is configured as in another period."""
        return replace(self, start_ns=None, end_ns=None) == replace(other, start_ns=None, end_ns=None)

    @property
    def up(self) -> bool:
        """Whether packets cross."""
        return self.state == "up"


def read_periods(run: Json) -> dict[Way, tuple[Period, ...]]:
    """The periods of every direction of every WAN link, in order."""
    plan = run["plan"]
    starts: dict[Way, list[tuple[int | None, str, Json]]] = {}
    for link in plan["links"]:
        if link["kind"] == "wan":
            for direction in ("forward", "backward"):
                starts[link["name"], direction] = [(None, "up", link[direction])]
    for change, applied_ns in _carried_out(run):
        way = (change["link"], change["direction"])
        if way in starts:
            starts[way].append((applied_ns, change["state"], change["shape"]))
    return {way: _periods(rows) for way, rows in starts.items()}


def period_at(periods: tuple[Period, ...], t_ns: int) -> Period:
    """The configuration that held at `t_ns`."""
    return [period for period in periods if period.start_ns is None or period.start_ns <= t_ns][-1]


def _carried_out(run: Json) -> list[tuple[Json, int]]:
    """The plan's link changes that held, with their times, in order of time."""
    applied: dict[tuple[str, str, str], list[int | None]] = defaultdict(list)
    for change in run.get("changes") or ():
        if change.get("link"):
            applied[change["fault"], change["link"], change["direction"]].append(change.get("applied_ns"))
    found: list[tuple[Any, int]] = []
    for change in run["plan"].get("changes", ()):
        if change.get("link"):
            times = applied[change["fault"], change["link"], change["direction"]]
            applied_ns = times.pop(0) if times else None
            if applied_ns is not None:
                found.append((change, applied_ns))
    return sorted(found, key=lambda pair: pair[1])


def _periods(rows: list[tuple[int | None, str, Json]]) -> tuple[Period, ...]:
    ends = [row[0] for row in rows[1:]] + [None]
    return tuple(
        Period(
            start_ns=start_ns,
            end_ns=end_ns,
            state=state,
            delay_us=shape["delay_us"],
            jitter_us=shape.get("jitter_us") or 0,
            loss=shape.get("loss") or 0.0,
            rate_bits_per_s=shape.get("rate_bits_per_s"),
            queue_packets=shape.get("queue_packets"),
            mtu_bytes=shape.get("mtu_bytes") or 1500,
            reorder=bool(shape.get("reorder")),
        )
        for (start_ns, state, shape), end_ns in zip(rows, ends, strict=True)
    )
