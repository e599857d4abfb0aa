"""What is to be said about machines' clocks, in words and as figures for the summary: from `clocks.json`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from analysis.capture.clocks.estimate import CONTROL, NOTHING, PACKETS

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A clock did not go on as it went. step_ns: set ahead by so much; None where only its rate changed."""

    t_ns: float  # by the reference clock
    step_ns: float | None
    before_ppm: float
    after_ppm: float


def changes(machine: Json) -> list[Change]:
    """Where a machine's clock was set, or changed its rate, by more than may be wrong about it.

    A clock's time is also cut where packets only took otherwise for a while: that is no change.
    """
    found = []
    for before, after in pairwise(machine["stretches"]):
        left = _offset_ns(before, before["to_ns"])
        step_ns = _offset_ns(after, after["from_ns"]) - left
        is_step = abs(step_ns) > max(before["bar_ns"], after["bar_ns"])
        rates = before["drift_ppm"], after["drift_ppm"]
        unsure_ppm = before["drift_error_ppm"] + after["drift_error_ppm"]
        if is_step or abs(rates[1] - rates[0]) > unsure_ppm:
            found.append(Change(before["to_ns"] - left, step_ns if is_step else None, *rates))
    return found


def _offset_ns(stretch: Json, t_ns: int) -> float:
    middle = (stretch["from_ns"] + stretch["to_ns"]) / 2
    return float(stretch["offset_ns"] + (t_ns - middle) * stretch["drift_ppm"] / 1e6)


def problems(machines: Sequence[Json]) -> list[str]:
    """Why times of different machines say nothing about each other."""
    return [
        f"the clock of {each['machine']} is not known: no packets went both ways, and nobody asked it"
        for each in machines
        if each["source"] == NOTHING
    ]


def notes(machines: Sequence[Json], zero_ns: int) -> list[str]:
    """What whoever reads figures across machines should know."""
    said = []
    for each in machines:
        name = each["machine"]
        if each["source"] == CONTROL:
            seen = each["seen_there"] or each["seen_back"]
            why = "packets went one way only" if seen else "no packets between them were captured"
            said.append(
                f"clock of {name}: {why}, so it is known from the control connection alone: to"
                f" {each['stretches'][0]['bar_ns'] / 1e6:.3f} ms at time 0, and worse as it may drift"
            )
        if not each["least_used"]:
            said.append(f"clock of {name}: packets took less than the site's links are said to take at least")
        said += [f"clock of {name}: {_told(change, zero_ns)}" for change in changes(each)]
    return said


def _told(change: Change, zero_ns: int) -> str:
    at = f"about {(change.t_ns - zero_ns) / 1e9:.1f} s"
    if change.step_ns is None:
        return f"its rate went from {change.before_ppm:.1f} to {change.after_ppm:.1f} ppm {at}"
    way = "ahead" if change.step_ns > 0 else "back"
    return f"it was set {way} by {abs(change.step_ns) / 1e6:.3f} ms {at}"


def summary(machines: Sequence[Json]) -> list[dict[str, Any]]:
    """The figures of summary.json: offset and rate in the longest stretch, and the bar."""
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
                "bar_ms": round(each["bar_median_ns"] / 1e6, 6),
                "bar_max_ms": round(each["bar_max_ns"] / 1e6, 6),
                "packets": each["seen_there"] + each["seen_back"],
                "changes": len(changes(each)),
            }
        )
    return found
