"""Estimates every machine's clock from the packets between machines, link by link away from the reference.

A machine that exchanged packets with one whose clock is known becomes known, and the other clock's error
widens its bounds. Paths with the fewest links are preferred, then the one with the narrowest bounds. If no
packets reach a machine in both directions, its clock is estimated from one reading over the control
connection, with that reading's error and the drift that a clock may have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.capture.clocks.band import UNKNOWN_NS, OffsetBand, bands_of, clock_of
from analysis.capture.clocks.bounds import WindowBounds, bounds_of
from analysis.capture.clocks.clock import REFERENCE, OffsetBounds
from analysis.capture.clocks.clocks_file import SteadyPeriod
from analysis.capture.clocks.rate_segments import hidden, possible, round_trip_of, segments_of, tightened
from analysis.capture.clocks.wire import MachineExchange

DRIFT_MAX = 100e-6
"""The drift assumed for a clock without packets: the tolerance of crystals by their manufacturers."""
CONTRADICTIONS_MAX = 0.1
"""Fraction of windows. Above it the path's declared least delay is discarded as too large; below it the
contradictions count as clock steps."""


@dataclass(frozen=True, slots=True)
class ControlReading:
    """A reading over the control connection: the offset of a machine's clock from the controller's, and its
    error.
    """

    t_ns: int  # by the machine's clock
    offset_ns: float
    error_ns: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a machine's clock. `way`: the machines from the reference to this one."""

    machine: str
    clock: OffsetBounds
    source: str  # REFERENCE_SOURCE, PACKETS, CONTROL or NOTHING
    way: tuple[str, ...]
    stretches: tuple[SteadyPeriod, ...] = ()
    seen_there: int = 0  # packets from the previous machine on the way
    seen_back: int = 0  # packets to it
    contradictions: int = 0  # windows left out because a clock was set within them
    least_used: bool = True  # whether the path's declared least delay was used


REFERENCE_SOURCE, PACKETS, CONTROL, NOTHING = "reference", "packets", "control", "nothing"


def estimate(
    machines: Sequence[str], met: Sequence[MachineExchange], readings: Mapping[str, ControlReading]
) -> dict[str, Estimate]:
    """Estimate every machine's clock, by its name; the first machine's is the reference."""
    reference = machines[0]
    known = {reference: Estimate(reference, REFERENCE, REFERENCE_SOURCE, (reference,))}
    while len(known) < len(machines):
        reached = _reached(known, met)
        if not reached:
            rest = [name for name in machines if name not in known]
            name = next((name for name in rest if name in readings), rest[0])
            reached = {name: _by_control(name, known[reference], met, readings)}
        known |= reached
    return {name: known[name] for name in machines}


def _reached(known: Mapping[str, Estimate], met: Sequence[MachineExchange]) -> dict[str, Estimate]:
    """Return the best estimate of each unknown machine that exchanged packets with a known one."""
    found: dict[str, list[Estimate]] = {}
    for one in met:
        for near, far in ((one.near, one.far), (one.far, one.near)):
            if near in known and far not in known and one.exchange.both_ways:
                found.setdefault(far, []).append(_by_packets(known[near], one.seen_from(near)))
    return {machine: min(tries, key=_width) for machine, tries in found.items()}


def _width(tried: Estimate) -> float:
    """Return the median width of the bounds, ns."""
    return float(np.median(tried.clock.high_ns - tried.clock.low_ns))


def _by_packets(near: Estimate, met: MachineExchange) -> Estimate:
    bounds, believed = bounds_of(met.exchange, near.clock, met.least_ns), True
    if np.count_nonzero(~possible(bounds, 0.0)) > CONTRADICTIONS_MAX * len(bounds):
        bounds, believed = bounds_of(met.exchange, near.clock), not any(met.least_ns)
    round_trip_ns = round_trip_of(bounds)
    fine = possible(bounds, round_trip_ns)
    bounds = bounds.take(fine)
    segments = segments_of(bounds, round_trip_ns) if len(bounds) else []
    if not segments:
        return _unknown(met.far)
    bounds = tightened(bounds, -hidden(round_trip_ns))
    bands = bands_of(bounds, segments)
    return Estimate(
        met.far,
        clock_of(bounds, bands),
        PACKETS,
        (*near.way, met.far),
        tuple(_stretch(bounds, band) for band in bands),
        met.exchange.seen_left,
        met.exchange.seen_came,
        int(np.count_nonzero(~fine)),
        least_used=believed,
    )


def _stretch(bounds: WindowBounds, band: OffsetBand) -> SteadyPeriod:
    times = np.concatenate((band.low_at[np.isfinite(band.low)], band.high_at[np.isfinite(band.high)]))
    at = np.array([times.min(), (times.min() + times.max()) / 2, times.max()])
    low, high = band.low_high(at)
    return SteadyPeriod(
        int(at[0]) + bounds.origin_ns,
        int(at[2]) + bounds.origin_ns,
        float(low[1] + high[1]) / 2 + bounds.base_ns,
        float((high - low).max()) / 2,
        sum(band.rates) / 2 * 1e6,
        (band.rates[1] - band.rates[0]) / 2 * 1e6,
    )


def _by_control(
    machine: str, reference: Estimate, met: Sequence[MachineExchange], readings: Mapping[str, ControlReading]
) -> Estimate:
    """Estimate from the controller's readings of both clocks, narrowed by packets of one direction."""
    if machine not in readings or reference.machine not in readings:
        return _unknown(machine)
    here, there = readings[machine], readings[reference.machine]
    offset_ns = here.offset_ns - there.offset_ns
    error_ns = here.error_ns + there.error_ns
    origin_ns, base_ns = here.t_ns, round(offset_ns)
    sides = offset_ns - base_ns - error_ns, offset_ns - base_ns + error_ns
    bounds = replace(_at_once(*sides), origin_ns=origin_ns, base_ns=base_ns)
    estimate = _of_one_band(machine, reference, bounds)
    direct = [one for one in met if {one.near, one.far} == {machine, reference.machine}]
    for one in direct:
        seen = one.seen_from(reference.machine)
        combined = _combined(bounds, bounds_of(seen.exchange, reference.clock, seen.least_ns))
        better = _of_one_band(machine, reference, combined)
        if (better.clock.high_ns >= better.clock.low_ns).all():
            estimate = replace(better, seen_there=seen.exchange.seen_left, seen_back=seen.exchange.seen_came)
    return estimate


def _combined(bounds: WindowBounds, more: WindowBounds) -> WindowBounds:
    """Return the windows of both, with the origin and base of the first."""
    time, offset = more.origin_ns - bounds.origin_ns, more.base_ns - bounds.base_ns
    low, high = more.low + offset, more.high + offset
    moved = replace(more, low_at=more.low_at + time, low=low, high_at=more.high_at + time, high=high)
    return WindowBounds.joined([bounds, moved])


def _of_one_band(machine: str, reference: Estimate, bounds: WindowBounds) -> Estimate:
    rates = (-DRIFT_MAX, DRIFT_MAX)
    band = OffsetBand(-np.inf, np.inf, bounds.low_at, bounds.low, bounds.high_at, bounds.high, rates)
    clock = clock_of(bounds, [band])
    return Estimate(machine, clock, CONTROL, (*reference.way, machine), (_stretch(bounds, band),))


def _at_once(low: float, high: float) -> WindowBounds:
    """Return the bounds of a clock at one moment."""
    nothing = np.zeros(1)
    return WindowBounds(0, 0, nothing, nothing, np.array([low]), nothing, np.array([high]))


def _unknown(machine: str) -> Estimate:
    at = _at_once(-UNKNOWN_NS, UNKNOWN_NS)
    band = OffsetBand(-np.inf, np.inf, at.low_at, at.low, at.high_at, at.high, (0.0, 0.0))
    return Estimate(machine, clock_of(at, [band]), NOTHING, (machine,))
