"""The configuration of each direction of each WAN link, period by period, as changed by the faults.

The plan defines every change, and run.json its time. A change that could not be executed begins no period.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from ipaddress import ip_address
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import Bools, ints
from experiments.planned import plan_routes
from experiments.planned.changes import LinkChange, LinkDirectionName, LinkState, Selection
from experiments.planned.plan import Plan
from experiments.records.run_record import RunRecord
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace, TraceSteps
from topologies.routes import Hop

Json = Mapping[str, Any]
LinkDirection = tuple[str, str]
"""A link's name and one of its directions, "forward" or "backward"."""
NO_TRACE = LinkTrace()
_Start = tuple[int | None, LinkState, LinkParameters]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period(LinkParameters):
    """A direction's configuration from `start_ns` until `end_ns`; None means from the start, or to the
    end.
    """

    start_ns: int | None
    end_ns: int | None
    state: LinkState
    corrupts_headers: bool = False
    """Whether bits of Ethernet and IP headers are flipped as well."""
    trace: LinkTrace = NO_TRACE
    """The trace of the direction; parameters that are traced follow it, starting at `zero_ns`."""
    zero_ns: int | None = None

    @property
    def rate_trace(self) -> TraceSteps | None:
        """The rate over time since `zero_ns`, if it is not constant."""
        return self.trace.rate if self.rate_traced else None

    @property
    def delay_trace(self) -> TraceSteps | None:
        """The delay over time since `zero_ns`, if it is not constant."""
        return self.trace.delay if self.delay_traced else None

    @property
    def delay_us_most(self) -> int:
        """The longest possible delay."""
        return max(self.delay_us, *(self.delay_trace.values if self.delay_trace else (0,)))

    def like(self, other: "Period") -> bool:
        """Return whether the configuration is the same as in another period."""
        return replace(self, start_ns=None, end_ns=None) == replace(other, start_ns=None, end_ns=None)

    @property
    def up(self) -> bool:
        """Whether packets cross the link in this period."""
        return self.state == LinkState.UP


def wan_hops(plan: Plan) -> dict[LinkDirection, Hop]:
    """Return the regions between which each direction of each WAN link leads."""
    found: dict[LinkDirection, Hop] = {}
    for link in plan.links:
        if link.kind == "wan":
            found[link.name, LinkDirectionName.FORWARD] = (link.a, link.b)
            found[link.name, LinkDirectionName.BACKWARD] = (link.b, link.a)
    return found


def carriers(plan: Plan) -> dict[Hop, LinkDirection]:
    """Return the link direction that carries each hop; a direction of a parallel link may carry none."""
    return {hop: (link.name, direction) for hop, (link, direction) in plan_routes.carriers(plan).items()}


@dataclass(frozen=True, slots=True)
class SelectedPackets:
    """Packets of a link direction that faults select, with the periods of their configuration.

    name: `of r2/server-0 port 7000`. address, port: None if any is selected.
    """

    name: str
    address: int | None
    port: int | None
    periods: tuple[Period, ...]

    def among(self, packets: pa.Table) -> Bools:
        """Return which of some packets (rows with `traversals.PACKET_COLUMNS`) are selected."""
        found = np.ones(packets.num_rows, np.bool_)
        for wanted, names in ((self.address, ("src_lo", "dst_lo")), (self.port, ("sport", "dport"))):
            if wanted is not None:
                found &= (ints(packets, names[0]) == wanted) | (ints(packets, names[1]) == wanted)
        return found


def read_selected(record: RunRecord) -> dict[LinkDirection, tuple[SelectedPackets, ...]]:
    """Return the packets of link directions that faults select; the first selection of a packet counts.

    They are in the order in which they first changed each link direction, as in the relay.
    """
    addresses = {host.name: int(ip_address(host.address)) for host in record.plan.hosts}
    host_of = {process.name: process.host for process in record.plan.processes}
    found: dict[LinkDirection, tuple[SelectedPackets, ...]] = {}
    changes = (each for each in record.plan.changes if isinstance(each, LinkChange))
    for selects in dict.fromkeys(each.selects for each in changes if each.selects is not None):
        address = None if selects.process is None else addresses[host_of[selects.process]]
        for direction, periods in read_periods(record, selects).items():
            if len(periods) > 1:
                packets = SelectedPackets(str(selects), address, selects.port, periods)
                found[direction] = (*found.get(direction, ()), packets)
    return {
        direction: tuple(sorted(each, key=lambda packets: packets.periods[1].start_ns or 0))
        for direction, each in found.items()
    }


def read_periods(
    record: RunRecord, selects: Selection | None = None
) -> dict[LinkDirection, tuple[Period, ...]]:
    """Return the periods of every direction of every WAN link, in order. selects: for these packets only."""
    links = {link.name: link for link in record.plan.links}
    starts: dict[LinkDirection, list[_Start]] = {
        (name, direction): [(None, LinkState.UP, links[name].towards(direction))]
        for name, direction in wan_hops(record.plan)
    }
    held = [
        (applied.applied_ns, change)
        for change, applied in record.changes_applied
        if isinstance(change, LinkChange) and change.selects == selects
    ]
    for applied_ns, change in sorted(held, key=lambda each: each[0] or 0):
        if applied_ns is not None and (change.link, change.direction) in starts:
            starts[change.link, change.direction].append((applied_ns, change.state, change.parameters))
    zero_ns = record.times.zero_ns
    return {
        (name, direction): _periods(
            rows, links[name].trace(direction) or NO_TRACE, zero_ns, record.plan.links_kind == "netem"
        )
        for (name, direction), rows in starts.items()
    }


def period_at(periods: tuple[Period, ...], t_ns: int) -> Period:
    """Return the configuration that held at `t_ns`."""
    return [period for period in periods if period.start_ns is None or period.start_ns <= t_ns][-1]


def _periods(
    rows: list[_Start], trace: LinkTrace, zero_ns: int | None, corrupts_headers: bool
) -> tuple[Period, ...]:
    """Return the periods of one direction. zero_ns: when traces began; None if they never did."""
    ends = [row[0] for row in rows[1:]] + [None]
    return tuple(
        Period(
            **{each.name: getattr(shape, each.name) for each in fields(LinkParameters)},
            start_ns=start_ns,
            end_ns=end_ns,
            state=state,
            corrupts_headers=corrupts_headers,
            trace=trace if zero_ns is not None else NO_TRACE,
            zero_ns=zero_ns,
        )
        for (start_ns, state, shape), end_ns in zip(rows, ends, strict=True)
    )
