"""The page of a comparison: one self-contained HTML file.

The runs' timelines are superimposed: throughput and latency of all regions, then region by region. Each run
starts at its own time 0. For all regions together, throughput is the mean and latency the worst p95 of each
bin. Grey spans are faults of the first run; a note lists runs with other fault times.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from analysis.pages.charting.chart_model import Axis, Chart, ChartSeries, two_decades, with_gaps
from analysis.pages.comparing import metrics
from analysis.pages.comparing.settings import settings
from analysis.pages.comparing.sides import ComparedRun
from analysis.pages.page_environment import environment, report_link
from analysis.pages.report.charts.bands import bands
from analysis.pages.report.charts.charts import TIME, latency_chart, spans, throughput_chart, time_end
from experiments.files.whole_files import write_whole
from experiments.records.summary import SECTION_TITLES

COMPARING = Path(__file__).parent
SAME_TIME_S = 0.5  # faults that are closer are drawn once
TOGETHER = "sides"
_PERCENTILE = "p95"
_THROUGHPUT = Axis("events/s at one client", "events/s")
_LATENCY = Axis("until every client has it, ms", "ms")


def write_page(sides: Sequence[ComparedRun], file: Path) -> None:
    """Write the page; links to the runs' reports are relative to it. Raises OSError."""
    write_whole(file, render(sides, file))


def render(sides: Sequence[ComparedRun], file: Path) -> str:
    """Return the page for the location `file`."""
    rows = metrics.compared(sides)
    return (
        environment(COMPARING)
        .get_template("comparison.html.j2")
        .render(
            sides=sides,
            title=_title(sides),
            reports={side.letter: report_link(side.directory, file) for side in sides},
            settings=settings(sides),
            sections=[
                (title, found)
                for section, title in SECTION_TITLES.items()
                if (found := [row for row in rows if row.section == section and not row.nothing])
            ],
            nothing=[row.title for row in rows if row.nothing],
            standing_out=metrics.standing_out(rows),
            overall=overall(sides),
            other_faults=other_faults(sides),
            doubtful=[side for side in sides if not side.record.valid],
        )
    )


def _title(sides: Sequence[ComparedRun]) -> str:
    names = list(dict.fromkeys(side.experiment for side in sides))
    return " and ".join(names)


def overall(sides: Sequence[ComparedRun]) -> tuple[Chart, ...]:
    """Return throughput and latency of all regions together, if any run has them."""
    through = [_combined(_lines(throughput_chart(side.record), ""), fmean) for side in sides]
    late = [_combined(_lines(latency_chart(side.record), _PERCENTILE), max) for side in sides]
    drawn = (
        _chart(sides, "throughput", "Throughput, mean of all regions", _THROUGHPUT, through),
        _chart(sides, "latency", "Latency, p95 of the slowest origin", _LATENCY, late),
    )
    return tuple(figure for figure in drawn if figure.series)


def other_faults(sides: Sequence[ComparedRun]) -> tuple[ComparedRun, ...]:
    """Return the runs whose faults or fault times differ from the first run's."""
    first = bands(sides[0].record)

    def same(side: ComparedRun) -> bool:
        own = bands(side.record)
        return len(own) == len(first) and all(
            mine.label == theirs.label and abs(mine.start_s - theirs.start_s) <= SAME_TIME_S
            for mine, theirs in zip(own, first, strict=True)
        )

    return tuple(side for side in sides[1:] if not same(side))


def _chart(
    sides: Sequence[ComparedRun],
    key: str,
    title: str,
    axis: Axis,
    points: Sequence[dict[float, float]],
) -> Chart:
    logarithmic = axis is _LATENCY and two_decades([y for found in points for y in found.values()])
    last_s = max((x for found in points for x in found), default=0.0)
    end_s = max(time_end(side.record, last_s) for side in sides)
    return Chart(
        key=key,
        title=title,
        x=Axis(TIME, "s", low=0.0, high=end_s),
        y=replace(axis, kind="logarithmic" if logarithmic else "linear"),
        series=tuple(
            ChartSeries(side.letter, side.colour, *_rounded(found), label=side.letter, subject=side.named)
            for side, found in zip(sides, points, strict=True)
            if found
        ),
        spans=tuple(span for span in spans(sides[0].record) if span.start <= end_s),
        together=TOGETHER,
    )


def _lines(chart: Chart, group: str) -> tuple[ChartSeries, ...]:
    return tuple(line for line in chart.series if line.group == group)


def _combined(lines: Sequence[ChartSeries], how: Callable[[list[float]], float]) -> dict[float, float]:
    values = defaultdict(list)
    for line in lines:
        for x, y in zip(line.x, line.y, strict=True):
            if y is not None:
                values[x].append(y)
    return {x: how(values[x]) for x in sorted(values)}


def _rounded(points: dict[float, float]) -> tuple[list[float], list[float | None]]:
    xs, ys = with_gaps(dict(sorted(points.items())))
    return xs, [None if y is None else float(f"{y:.5g}") for y in ys]
