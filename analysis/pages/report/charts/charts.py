"""The timelines as charts: series, colours, styles and axes.

A bin is drawn at its middle. Bins for which the analysis has no row are gaps in the line, never zeros.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from analysis.pages.charting.chart_model import (
    NEAR,
    Axis,
    Chart,
    ChartSeries,
    ChartSpan,
    Reference,
    highest,
    two_decades,
    with_gaps,
)
from analysis.pages.report.charts.bands import bands
from analysis.pages.report.formatting import EN_DASH, large, number, percent, scaled
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.pages.report.traffic import traffic_spans
from experiments.planned.plan import LinkPlan
from topologies.drawing.palette import colour_of, dash_of
from topologies.link_trace import NS_PER_S, RateCurve, TraceSteps

Points = tuple[list[float], list[float | None]]
"""Seconds since time 0, and values."""

PERCENTILES = {"p50": ("", 2.0), "p95": ("dash", 1.25), "p99": ("dot", 1.25)}
"""Dashes, if not the region's, and line width of each percentile."""
SHORT_DRAIN_S = 2.0  # a shorter tail after the drivers stopped is not shown
TOGETHER = "run"
OTHERS = "traffic_bytes_per_s"
TIME = "seconds since start"


def throughput_chart(record: AnalysedRun) -> Chart:
    """Return events/s delivered to one client, by region (the first panel of the paper's figure 7)."""
    rows = [row for row in record.throughput if row["scope"] == "region"]
    series = _shown(_of_regions(record, rows, "name", "events_per_s"))
    return Chart(
        key="throughput",
        title="Throughput by region",
        x=time_axis(record, series),
        y=Axis("events/s at one client", "events/s"),
        series=series,
        spans=spans(record),
        together=TOGETHER,
    )


def latency_chart(record: AnalysedRun) -> Chart:
    """Return latency percentiles by the region of publication (the second panel of the paper's figure 7)."""
    series = _shown(
        one
        for percentile in PERCENTILES
        for one in _of_regions(record, record.latency, "origin", f"{percentile}_ms", percentile)
    )
    bars = [row["error_ms"] for row in record.latency if row.get("error_ms") is not None]
    logarithmic = two_decades([y for one in series for y in one.y if y is not None])
    return Chart(
        key="latency",
        title="Latency by origin",
        x=time_axis(record, series),
        y=Axis("until every client has it, ms", "ms", kind="logarithmic" if logarithmic else "linear"),
        series=series,
        spans=spans(record),
        together=TOGETHER,
        note=f"times by several clocks: ±{number(median(bars), 2)} ms" if bars else "",
    )


WAYS = ("forward", "backward")


def link_charts(record: AnalysedRun, quantity: str = "bytes_per_s") -> tuple[Chart, ...]:
    """Return one chart per WAN link.

    It has one line per direction in the colour of its source region, and background traffic as dotted lines.

    quantity: "bytes_per_s" (on the wire) or "events_per_s". All charts of a quantity share an axis.
    """
    rows = defaultdict(list)
    for row in record.throughput:
        if row["scope"] == "link" and row["direction"] in WAYS and _finite(row.get(quantity)) is not None:
            rows[row["name"]].append(row)
    links = [link for link in record.wan_links if rows[link.name]]
    return tuple(_link_chart(record, link, rows[link.name], quantity) for link in links)


def _link_chart(record: AnalysedRun, link: LinkPlan, rows: list[Row], quantity: str) -> Chart:
    ends = {"forward": (link.a, link.b), "backward": (link.b, link.a)}
    series = _shown(
        _series(record, f"{a}→{b}", a, [row for row in rows if row["direction"] == way], quantity, way)
        for way, (a, b) in ends.items()
    )
    in_bytes = quantity == "bytes_per_s"
    measured = series
    others = _of_others(record, ends, rows) if in_bytes else ()
    if in_bytes:
        most = NEAR * highest(measured)
        traced = (_traced(record, link, way, f"{a}→{b}", most) for way, (a, b) in ends.items())
        series += tuple(one for one in traced if one is not None)
    rates = {link.towards(one.group).rate_bits_per_s for one in series}
    varies = any(_rate_of(link, way) for way in ends)
    rate = rates.pop() if len(rates) == 1 and in_bytes and not varies else None
    return Chart(
        key=f"link-{link.name}",
        title=link.given_name or f"{link.a}{EN_DASH}{link.b}",
        x=time_axis(record, series),
        y=Axis("bytes/s on the wire" if in_bytes else "events/s", "B/s" if in_bytes else "events/s"),
        series=series + others,
        spans=spans(record) + _unproven(record, link.name),
        references=(Reference("configured rate", rate / 8, rate / 8, near=True),) if rate else (),
        links=(link.name,),
        together=TOGETHER,
        scale=quantity,
        note=_utilisation(link, measured, others)
        if in_bytes
        else f"peak {large(highest(series), 'events/s')}",
        small=True,
    )


def spans(record: AnalysedRun) -> tuple[ChartSpan, ...]:
    """Return the periods of faults, then those of background traffic."""
    return fault_spans(record) + traffic_spans(record)


def fault_spans(record: AnalysedRun) -> tuple[ChartSpan, ...]:
    """Return the periods of faults."""
    return tuple(
        ChartSpan(band.label, band.start_s, band.end_s, band.fault, band.links, row=band.row)
        for band in bands(record)
    )


def _unproven(record: AnalysedRun, link: str) -> tuple[ChartSpan, ...]:
    """Return the periods for which a direction's behaviour is unproven."""
    periods = {
        (max(0.0, row["from_s"] or 0.0), row["to_s"])
        for row in record.fidelity
        if row["link"] == link and row.get("verdict") == "unproven"
    }
    ordered = sorted(periods, key=lambda period: period[0])
    return tuple(ChartSpan("", start_s, end_s, links=(link,), hatched=True) for start_s, end_s in ordered)


def _of_others(
    record: AnalysedRun, ends: Mapping[str, tuple[str, str]], rows: Sequence[Row]
) -> tuple[ChartSeries, ...]:
    """Return background traffic by direction, if there is any."""
    found = []
    for way, (a, b) in ends.items():
        direction_rows = [row for row in rows if row["direction"] == way]
        if any(row.get(OTHERS) for row in direction_rows):
            series = _series(record, f"{a}→{b}, background", a, direction_rows, OTHERS, way)
            found.append(replace(series, dash="dot", width=1.25, label="background"))
    return tuple(found)


def _rate_of(link: LinkPlan, way: str) -> TraceSteps | None:
    """Return the trace of a direction's rate over time, if it has one."""
    trace = link.trace(way)
    return trace.rate if trace else None


def _traced(record: AnalysedRun, link: LinkPlan, way: str, name: str, most: float) -> ChartSeries | None:
    """Return the capacity of a direction by its trace in each second, regardless of faults.

    Values above `most` are gaps.
    """
    steps = _rate_of(link, way)
    if steps is None:
        return None
    region = link.a if way == "forward" else link.b
    curve = RateCurve(0, 1, steps)
    seconds = range(math.ceil(record.length_s))
    bits = [curve.bits((second + 1) * NS_PER_S) - curve.bits(second * NS_PER_S) for second in seconds]
    return ChartSeries(
        name=f"{name} could carry",
        colour=colour_of(record.regions.index(region)),
        x=[second + 0.5 for second in seconds],
        y=[each / 8 if each / 8 <= most else None for each in bits],
        subject=region,
        group=way,
        dash="dot",
        width=1.0,
    )


def _utilisation(link: LinkPlan, series: Sequence[ChartSeries], others: Sequence[ChartSeries] = ()) -> str:
    """Return the busiest bin as text, relative to its direction's rate.

    Also with background traffic, if any.
    """
    if others:
        return f"{_utilisation(link, series)}; with background traffic {_shared(link, series, others)}"
    busiest = max(series, key=lambda one: highest([one]))
    peak, rate = highest([busiest]), link.towards(busiest.group).rate_bits_per_s
    if steps := _rate_of(link, busiest.group):
        return f"peak {scaled(peak, 'B/s')}, rate by {steps.file}: {scaled(steps.mean, 'bit/s')} on average"
    if not rate:
        return f"peak {scaled(peak, 'B/s')}, no rate limit"
    return f"peak {scaled(peak, 'B/s')}, {percent(peak * 8 / rate)} of {scaled(rate, 'bit/s')}"


def _shared(link: LinkPlan, series: Sequence[ChartSeries], others: Sequence[ChartSeries]) -> str:
    """Return the busiest bin of the system and background traffic together."""
    peaks = []
    for one in others:
        own = next((each for each in series if each.group == one.group), None)
        sums = dict(zip(own.x, own.y, strict=True)) if own else {}
        peak = max(
            ((y or 0.0) + (sums.get(x) or 0.0) for x, y in zip(one.x, one.y, strict=True)), default=0.0
        )
        peaks.append((peak, link.towards(one.group).rate_bits_per_s))
    peak, rate = max(peaks, key=lambda each: each[0])
    return percent(peak * 8 / rate) if rate else scaled(peak, "B/s")


def _shown(series: Iterable[ChartSeries]) -> tuple[ChartSeries, ...]:
    return tuple(one for one in series if any(y is not None for y in one.y))


def time_axis(record: AnalysedRun, series: Sequence[ChartSeries]) -> Axis:
    """Return the axis from time 0 to the end."""
    last_s = max((one.x[-1] for one in series), default=0.0)
    return Axis(TIME, "s", low=0.0, high=time_end(record, last_s))


def time_end(record: AnalysedRun, last_s: float) -> float:
    """Return when the run ended, including a drain that is not short."""
    return record.length_s if last_s <= record.length_s + SHORT_DRAIN_S else math.ceil(last_s)


def _of_regions(
    record: AnalysedRun, rows: Iterable[Row], region_column: str, value_column: str, group: str = ""
) -> Iterable[ChartSeries]:
    by_region = defaultdict(list)
    for row in rows:
        by_region[row[region_column]].append(row)
    return (
        _series(record, region, region, by_region[region], value_column, group)
        for region in record.regions
        if by_region[region]
    )


def _series(  # noqa: PLR0917 (independent parameters)
    record: AnalysedRun, name: str, region: str, rows: Sequence[Row], value_column: str, group: str
) -> ChartSeries:
    index = record.regions.index(region) if region in record.regions else len(record.regions)
    dash, width = PERCENTILES.get(group, ("", 2.0))
    x, y = _points(rows, value_column)
    low, high = _bars(y, _points(rows, "error_ms")[1])
    return ChartSeries(
        name=f"{name} {group}" if group in PERCENTILES else name,
        colour=colour_of(index),
        x=x,
        y=y,
        low=low,
        high=high,
        label=name,
        subject=region,
        group=group,
        dash=dash or dash_of(index),
        width=width,
    )


def _bars(y: Sequence[float | None], bar: Sequence[float | None]) -> tuple[Sequence[float | None], ...]:
    """Return values plus and minus their error bounds; empty if one clock measured all."""
    if not any(bar):
        return (), ()
    return tuple(
        tuple(None if at is None else at + sign * (by or 0.0) for at, by in zip(y, bar, strict=True))
        for sign in (-1, 1)
    )


def _points(rows: Sequence[Row], value_column: str) -> Points:
    """Return middles of bins and their values, by time; a gap between two bins becomes one None."""
    shown = sorted((row for row in rows if row["start_s"] >= 0), key=lambda row: float(row["start_s"]))
    bin_s = shown[0]["bin_s"] if shown else 0.0
    return with_gaps(
        {round(row["start_s"] + bin_s / 2, 6): _finite(row.get(value_column)) for row in shown}, bin_s
    )


def _finite(value: float | None) -> float | None:
    """Return five significant digits, which exceed a pixel's resolution; None for a gap."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")
