"""The runs' timelines over each other: throughput and latency of all regions, and region by region.

Every run starts at its own time 0. Of all regions together throughput is the mean and latency the worst
p95, bin by bin. Grey spans are the faults' of the first run; where another run's were at other times, a
note says so.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence

from analysis.charting.axis import linear, logarithmic, spanning
from analysis.charting.chart import Curve, Figure, Span
from analysis.comparing.sides import Side
from analysis.report.bands import bands
from analysis.report.charts import LOGARITHMIC_FROM, Chart, Line, latency_chart, throughput_chart

SAME_TIME_S = 0.5  # faults that are closer are drawn once
REGIONS_SHOWN = 8
_PERCENTILE = "p95"


def overall(sides: Sequence[Side]) -> tuple[Figure, ...]:
    """Throughput and latency of all regions together; none of what no run has."""
    through = [_together(_lines(throughput_chart(side.record), ""), _mean) for side in sides]
    late = [_together(_lines(latency_chart(side.record), _PERCENTILE), max) for side in sides]
    drawn = (
        _figure(sides, "throughput", "Throughput, mean of all regions", "events/s", through),
        _figure(sides, "latency", "Latency, p95 of the slowest origin", "ms", late),
    )
    return tuple(figure for figure in drawn if figure.curves)


def by_region(sides: Sequence[Side]) -> tuple[Figure, ...]:
    """Throughput and latency of each region that the first runs have, at most REGIONS_SHOWN of them."""
    through = [{line.region: line for line in _lines(throughput_chart(side.record), "")} for side in sides]
    late = [{line.region: line for line in _lines(latency_chart(side.record), _PERCENTILE)} for side in sides]
    regions = list(dict.fromkeys(region for side in sides for region in side.record.regions))[:REGIONS_SHOWN]
    figures = []
    for number, region in enumerate(regions):
        for key, title, unit, found in (
            ("throughput", f"{region}: throughput", "events/s", through),
            ("latency", f"{region}: latency p95 of its events", "ms", late),
        ):
            points = [_points(lines.get(region)) for lines in found]
            figures.append(_figure(sides, f"{key}-{number}", title, unit, points, small=True))
    return tuple(figure for figure in figures if figure.curves)


def other_faults(sides: Sequence[Side]) -> tuple[Side, ...]:
    """The runs whose faults were others, or at other times, than the first run's."""
    first = bands(sides[0].record)

    def same(side: Side) -> bool:
        own = bands(side.record)
        return len(own) == len(first) and all(
            mine.label == theirs.label and abs(mine.start_s - theirs.start_s) <= SAME_TIME_S
            for mine, theirs in zip(own, first, strict=True)
        )

    return tuple(side for side in sides[1:] if not same(side))


def _figure(
    sides: Sequence[Side],
    key: str,
    title: str,
    unit: str,
    points: Sequence[dict[float, float]],
    *,
    small: bool = False,
) -> Figure:
    values = [y for found in points for y in found.values()]
    positive = [y for y in values if y > 0]
    two_decades = unit == "ms" and bool(positive) and max(positive) / min(positive) >= LOGARITHMIC_FROM
    end_s = max((x for found in points for x in found), default=0.0)
    curves = [
        Curve(side.letter, side.colour, *_with_gaps(found), label=side.letter)
        for side, found in zip(sides, points, strict=True)
        if found
    ]
    return Figure(
        key=key,
        title=title,
        unit=unit,
        x=spanning(0.0, end_s, ticks=3 if small else 6),
        y=logarithmic(values) if two_decades else linear(values, ticks=3 if small else 4),
        curves=curves,
        spans=_spans(sides[0], end_s),
        small=small,
    )


def _spans(side: Side, end_s: float) -> tuple[Span, ...]:
    return tuple(
        Span(band.label, band.start_s, end_s if band.end_s is None else band.end_s)
        for band in bands(side.record)
        if band.start_s <= end_s
    )


def _lines(chart: Chart, group: str) -> tuple[Line, ...]:
    return tuple(line for line in chart.lines if line.group == group)


def _points(line: Line | None) -> dict[float, float]:
    if line is None:
        return {}
    return {x: y for x, y in zip(line.x, line.y, strict=True) if y is not None}


def _together(lines: Sequence[Line], how: Callable[[list[float]], float]) -> dict[float, float]:
    values = defaultdict(list)
    for line in lines:
        for x, y in _points(line).items():
            values[x].append(y)
    return {x: how(values[x]) for x in sorted(values)}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _with_gaps(points: dict[float, float]) -> tuple[list[float], list[float | None]]:
    """None between points that are further apart than bins are."""
    xs: list[float] = []
    ys: list[float | None] = []
    times = sorted(points)
    bin_s = min((b - a for a, b in itertools.pairwise(times)), default=0.0)
    for x in times:
        if xs and x - xs[-1] > 1.5 * bin_s:
            xs.append(round(xs[-1] + bin_s, 6))
            ys.append(None)
        xs.append(x)
        ys.append(float(f"{points[x]:.5g}"))
    return xs, ys
