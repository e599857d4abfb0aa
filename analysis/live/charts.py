"""The charts of the live page as they are before anything was measured: the page fills their series in."""

from collections.abc import Sequence
from typing import Any

from analysis.pages.charting.model import Axis, Chart, Series
from analysis.pages.charting.page import as_json
from analysis.pages.report.charts import TIME, TOGETHER
from topologies.palette import colour_of, dash_of


def live_charts(regions: Sequence[str], duration_s: float) -> list[dict[str, Any]]:
    """Throughput and latency, with a series for each region."""
    return [
        as_json(
            Chart(
                key=key,
                title=title,
                x=Axis(TIME, "s", low=0.0, high=duration_s),
                y=axis,
                series=tuple(
                    Series(name, colour_of(number), (), (), label=name, dash=dash_of(number))
                    for number, name in enumerate(regions)
                ),
                together=TOGETHER,
            )
        )
        for key, title, axis in (
            ("throughput", "Throughput by region", Axis("events/s at one client", "events/s")),
            ("latency", "Latency by origin", Axis("until every client has it, ms", "ms")),
        )
    ]
