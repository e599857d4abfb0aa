"""How far the machines' clocks were from each other: a table, and for each clock its way through the run with
its bar, as plain data for the page and the figures.

A clock is drawn against the straight line of its longest time without a change, since what it is off
altogether (hours, perhaps) and how fast it drifts would hide all else; both stand beside it in words.
"""

from dataclasses import dataclass

import numpy as np

from analysis.clocks.clock import Floats
from analysis.clocks.notes import summary
from analysis.report.formatting import count_of, number, short_time, with_unit
from analysis.report.reading import RunRecord
from analysis.report.tables import Cell, Column, Table, figure, table, words
from topologies.palette import colour_of

POINTS = 240
CLOCKS_DRAWN = 12
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 320.0, 132.0, 46.0, 8.0, 18.0  # pixels of a plot on the page
_SOURCES = {
    "reference": "the run's clock",
    "packets": "packets both ways",
    "control": "control connection only",
    "nothing": "unknown",
}


@dataclass(frozen=True, slots=True)
class Track:
    """A clock through the run: seconds since time 0, and bounds in microseconds from its straight line."""

    machine: str
    colour: str
    line: str  # the straight line, in words
    x: Floats
    low_us: Floats
    high_us: Floats

    @property
    def top_us(self) -> float:
        """What the axis has to reach, up and down."""
        return float(max(np.abs(self.low_us).max(), np.abs(self.high_us).max(), 1.0))

    @property
    def band(self) -> str:
        """The band between the bounds as points of an SVG polygon."""
        ahead = zip(self.x, self.high_us, strict=True)
        back = zip(self.x[::-1], self.low_us[::-1], strict=True)
        return " ".join(f"{self.at_x(x):.1f},{self.at_y(y):.1f}" for x, y in (*ahead, *back))

    @property
    def middle(self) -> str:
        """The estimate as points of an SVG line."""
        middle = zip(self.x, (self.low_us + self.high_us) / 2, strict=True)
        return " ".join(f"{self.at_x(x):.1f},{self.at_y(y):.1f}" for x, y in middle)

    def at_x(self, x: float) -> float:
        """Where a time stands in the plot."""
        part = (x - self.x[0]) / (self.x[-1] - self.x[0])
        return float(LEFT + part * (WIDTH - LEFT - 4))

    def at_y(self, y_us: float) -> float:
        """Where an offset stands in the plot."""
        return float(TOP + (1 - y_us / self.top_us) / 2 * (HEIGHT - TOP - BOTTOM))

    @property
    def top(self) -> str:
        """The axis' upper end in words."""
        return short_time(self.top_us / 1e6, 2)


def tracks(record: RunRecord) -> tuple[Track, ...]:
    """Every clock but the reference's; of many the first ones."""
    times = record.run.get("times") or {}
    zero_ns, end_ns = times.get("zero_ns"), times.get("drained_ns") or times.get("ended_ns")
    known = [each for each in record.machines if each["source"] in ("packets", "control")]
    if zero_ns is None or end_ns is None or end_ns <= zero_ns:
        return ()
    reference_ns = np.linspace(zero_ns, end_ns, POINTS).astype(np.int64)
    seconds = (reference_ns - zero_ns) / 1e9
    order = [each["machine"] for each in record.machines]
    found = []
    for each in known[:CLOCKS_DRAWN]:
        clock = record.clocks.by_machine[each["machine"]]
        low, high = clock.bounds(clock.own(reference_ns))
        longest = max(each["stretches"], key=lambda one: one["to_ns"] - one["from_ns"])
        rate = longest["drift_ppm"] * 1e3  # ns a second
        middle_s = ((longest["from_ns"] + longest["to_ns"]) / 2 - longest["offset_ns"] - zero_ns) / 1e9
        straight = longest["offset_ns"] + rate * (seconds - middle_s)
        found.append(
            Track(
                machine=each["machine"],
                colour=colour_of(order.index(each["machine"])),
                line=f"{short_time(straight[0] / 1e9)}, {rate / 1e3:+.2f}\u00a0ppm",
                x=seconds,
                low_us=(low - straight) / 1e3,
                high_us=(high - straight) / 1e3,
            )
        )
    return tuple(found)


def clocks_table(record: RunRecord) -> Table:
    """What is known of each machine's clock, and what that rests on."""
    columns = (
        Column("Machine"),
        Column("Known from"),
        Column("Offset", True, "from the run's clock, in the longest time without a change"),
        Column("Drift", True, "how much faster than the run's clock"),
        Column("Bar", True, "by how much the offset may be wrong, either way: in the median"),
        Column("Widest bar", True, "about a change of the clock, or far from any packet"),
        Column("Packets", True, "seen by both machines, there and back"),
        Column("Changes"),
    )
    rows = (
        (
            words(row["machine"]),
            words(_SOURCES[row["from"]], "bad" if row["from"] == "nothing" else ""),
            figure(short_time((row["offset_ms"] or 0) / 1e3), row["offset_ms"]),
            figure(with_unit(row["drift_ppm"], "ppm"), row["drift_ppm"]),
            _bar(row["bar_ms"]),
            _bar(row["bar_max_ms"]),
            figure(number(row["packets"]), row["packets"]),
            words(count_of(row["changes"], "change") if row["changes"] else "none"),
        )
        for row in summary(record.machines)
    )
    return table("clocks", columns, rows)


def _bar(bar_ms: float) -> Cell:
    return figure(f"±{short_time(bar_ms / 1e3, 2)}" if bar_ms else "0", bar_ms)
