"""The timelines as plain data: which lines, in which colour and style, over which axis.

One definition serves the interactive page (assets/timelines.js draws it with plotly) and the PNG and SVG
figures (figures.py, with matplotlib), so that both show the same. A bin is drawn at its middle. Bins for
which the analysis has no row are gaps in the line, never zeros.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from analysis.report.bands import Band, bands
from analysis.report.formatting import EN_DASH, large, number, percent, scaled
from analysis.report.reading import Row, RunRecord
from topologies.palette import colour_of, dash_of

Points = tuple[tuple[float, ...], tuple[float | None, ...]]
"""Seconds since time 0, and values."""

PERCENTILES = ("p50", "p95", "p99")
LOGARITHMIC_FROM = 100.0  # largest over smallest: two decades
SHORT_DRAIN_S = 2.0  # a shorter tail after the drivers stopped says nothing


@dataclass(frozen=True, slots=True)
class Line:
    """One line. `group` is what can be switched on and off together, besides the region."""

    name: str
    region: str
    colour: str
    dash: str
    group: str
    x: tuple[float, ...]  # seconds since time 0
    y: tuple[float | None, ...]
    bar: tuple[float | None, ...] = ()  # by how much each may be wrong; empty where one clock measured all


@dataclass(frozen=True, slots=True)
class Chart:
    """One plot. `limit` is a horizontal line of reference in the axis' unit, drawn when it is near."""

    key: str
    title: str
    y_label: str  # with its unit
    unit: str
    lines: tuple[Line, ...]
    bands: tuple[Band, ...]
    x_end_s: float
    logarithmic: bool = False
    limit: float | None = None
    note: str = ""
    links: tuple[str, ...] = ()  # the WAN link that the plot is about


def throughput_chart(record: RunRecord) -> Chart:
    """Events delivered to one client per second, per region (the first panel of the paper's figure 7)."""
    rows = [row for row in record.throughput if row["scope"] == "region"]
    return _chart(
        record,
        _region_lines(record, rows, "name", "events_per_s", ""),
        key="throughput",
        title="Throughput by region",
        y_label="events/s at one client",
        unit="events/s",
    )


def latency_chart(record: RunRecord) -> Chart:
    """Latency percentiles by the region in which an event was published (the second panel of figure 7)."""
    lines = [
        line
        for percentile in PERCENTILES
        for line in _region_lines(record, record.latency, "origin", f"{percentile}_ms", percentile)
    ]
    values = [y for line in lines for y in line.y if y is not None and y > 0]
    bars = [row["bar_ms"] for row in record.latency if row.get("bar_ms") is not None]
    return _chart(
        record,
        lines,
        note=f"times by several clocks: ±{number(median(bars), 2)} ms" if bars else "",
        key="latency",
        title="Latency by origin",
        y_label="until every client has it, ms",
        unit="ms",
        logarithmic=bool(values) and max(values) / min(values) >= LOGARITHMIC_FROM,
    )


def link_charts(record: RunRecord, quantity: str = "bytes_per_s") -> tuple[Chart, ...]:
    """One chart per WAN link, one line per direction in the colour of the region it comes from.

    quantity: "bytes_per_s" (on the wire) or "events_per_s". All charts of a quantity are to share an axis.
    """
    rows = defaultdict(list)
    for row in record.throughput:
        if row["scope"] == "link" and row.get(quantity) is not None:
            rows[row["name"]].append(row)
    links = [link for link in record.wan_links if rows[link["name"]]]
    return tuple(_link_chart(record, link, rows[link["name"]], quantity) for link in links)


def _link_chart(record: RunRecord, link: Row, rows: list[Row], quantity: str) -> Chart:
    lines = []
    for direction, origin, other in (("forward", link["a"], link["b"]), ("backward", link["b"], link["a"])):
        points = _series([row for row in rows if row["direction"] == direction], quantity)
        lines.append(_line(record, f"{origin}→{other}", origin, direction, points))
    in_bytes = quantity == "bytes_per_s"
    rates = {link[line.group].get("rate_bits_per_s") for line in lines}
    rate = rates.pop() if len(rates) == 1 else None
    return _chart(
        record,
        lines,
        key=f"link-{link['name']}",
        title=link["name"].replace("-", EN_DASH),
        y_label="bytes/s on the wire" if in_bytes else "events/s",
        unit="B/s" if in_bytes else "events/s",
        limit=rate / 8 if rate and in_bytes else None,
        links=(link["name"],),
        note=_utilisation(link, lines) if in_bytes else f"peak {large(_peak(lines), 'events/s')}",
    )


def _utilisation(link: Row, lines: Sequence[Line]) -> str:
    """The busiest bin in words, against the rate of its direction."""
    busiest = max(lines, key=lambda line: _peak([line]))
    peak, rate = _peak([busiest]), link[busiest.group].get("rate_bits_per_s")
    if not rate:
        return f"peak {scaled(peak, 'B/s')}, no rate limit"
    return f"peak {scaled(peak, 'B/s')}, {percent(peak * 8 / rate)} of {scaled(rate, 'bit/s')}"


def _peak(lines: Iterable[Line]) -> float:
    return max((y for line in lines for y in line.y if y is not None), default=0.0)


def _chart(record: RunRecord, lines: Sequence[Line], **looks: Any) -> Chart:
    """`looks` are the fields of Chart that it has beside what every chart of this run has."""
    shown = tuple(line for line in lines if any(y is not None for y in line.y))
    end_s = end_of_axis(record, max((line.x[-1] for line in shown), default=0.0))
    return Chart(lines=shown, bands=bands(record), x_end_s=end_s, **looks)


def end_of_axis(record: RunRecord, last_s: float) -> float:
    """Where the run ended; a drain that is not short is shown as well."""
    return record.length_s if last_s <= record.length_s + SHORT_DRAIN_S else math.ceil(last_s)


def _region_lines(
    record: RunRecord, rows: Iterable[Row], region_column: str, value_column: str, group: str
) -> tuple[Line, ...]:
    by_region = defaultdict(list)
    for row in rows:
        by_region[row[region_column]].append(row)
    return tuple(
        _line(
            record,
            region,
            region,
            group,
            _series(by_region[region], value_column),
            _series(by_region[region], "bar_ms")[1],
        )
        for region in record.regions
        if by_region[region]
    )


def _line(  # noqa: PLR0917 (each is a thing of its own)
    record: RunRecord, name: str, region: str, group: str, points: Points, bar: Sequence[float | None] = ()
) -> Line:
    index = record.regions.index(region) if region in record.regions else len(record.regions)
    return Line(
        name, region, colour_of(index), dash_of(index), group, *points, tuple(bar) if any(bar) else ()
    )


def _series(rows: Sequence[Row], value_column: str) -> Points:
    """Middles of bins and their values, by time; a missing bin between two others becomes one None."""
    xs: list[float] = []
    ys: list[float | None] = []
    for row in sorted((row for row in rows if row["start_s"] >= 0), key=lambda row: float(row["start_s"])):
        middle = round(row["start_s"] + row["bin_s"] / 2, 6)
        if xs and middle - xs[-1] > 1.5 * row["bin_s"]:
            xs.append(round(xs[-1] + row["bin_s"], 6))
            ys.append(None)
        xs.append(middle)
        ys.append(_finite(row.get(value_column)))
    return tuple(xs), tuple(ys)


def _finite(value: float | None) -> float | None:
    """Five significant digits are more than a pixel; what is not a number is a gap."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")
