"""Background traffic on the page: strips along the bottom of the timelines, and a row for each entry."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from analysis.pages.charting.chart_model import ChartSpan
from analysis.pages.report.formatting import EN_DASH, count_of, number, percent, scaled
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.tables import PageTable, label, quantity, table
from experiments.planned.plan import TrafficPlan

STRIP_ROWS = 3


def traffic_spans(record: AnalysedRun) -> tuple[ChartSpan, ...]:
    """Return the periods of planned traffic until the end of the run.

    The first of each entry has its name.
    """
    return tuple(
        ChartSpan(
            f"{each.name} {'→'.join(_ends(each, record))}" if number == 0 else "",
            burst.at_us / 1e6,
            min(burst.at_us / 1e6 + burst.length_s, record.length_s),
            row=row % STRIP_ROWS,
            other=True,
        )
        for row, each in enumerate(record.plan.traffic)
        for number, burst in enumerate(each.bursts)
        if burst.at_us / 1e6 < record.length_s
    )


def traffic_table(record: AnalysedRun) -> PageTable:
    """Return the planned and the measured traffic of each entry."""
    return table("traffic", _COLUMNS, _rows(record))


def _rows(record: AnalysedRun) -> Iterator[dict[str, Any]]:
    figures = record.summary.get("traffic") or {}
    for each in record.plan.traffic:
        yield {
            **(figures.get(each.name) or {}),
            "name": each.name,
            "ends": " → ".join(_ends(each, record)),
            "what": traffic_kind(each),
            "when": traffic_times(each),
        }


def traffic_kind(traffic: TrafficPlan) -> str:
    """Return `2 TCP flows`, or `UDP`."""
    return "UDP" if traffic.protocol == "udp" else count_of(traffic.flows, "TCP flow")


def traffic_times(traffic: TrafficPlan) -> str:
    """Return `5 to 45 s`, with on and off times if the traffic is intermittent."""
    times = f"{traffic.at_us / 1e6:g}{EN_DASH}{traffic.until_us / 1e6:g}\u00a0s"
    first = next(pairwise(traffic.bursts), None)
    if first is None:
        return times
    one, other = first
    silent_s = (other.at_us - one.at_us) / 1e6 - one.length_s
    return f"{times}, {one.length_s}\u00a0s on, {silent_s:g}\u00a0s off"


def _ends(traffic: TrafficPlan, record: AnalysedRun) -> tuple[str, str]:
    regions = {host.name: host.region for host in record.plan.hosts}
    return regions[traffic.host], regions[traffic.target]


_rate, _bytes = partial(scaled, unit="bit/s"), partial(scaled, unit="B")


def _configured(row: dict[str, Any]) -> str:
    rate = row.get("asked_bits_per_s")
    return "unlimited" if rate is None else _rate(rate)


_COLUMNS = (
    label("Traffic", "name"),
    label("Path", "ends"),
    label("What", "what"),
    label("When", "when"),
    label("Configured", _configured, "while it sends, all flows together"),
    quantity("Arrived", "achieved_bits_per_s", _rate,
        "payload after the last link, per second of planned sending"),
    quantity("Sent", "sent_bytes", _bytes, "payload, reported by its sender"),
    quantity("Received", "received_bytes", _bytes, "payload, reported by its receiver"),
    quantity("Retransmitted", "retransmissions", number, "TCP segments, reported by its sender",
        needed=lambda row: row.get("retransmissions") is not None),
    quantity("Lost", "loss", percent, "datagrams, reported by its receiver",
        needed=lambda row: row.get("loss") is not None),
    quantity("On links", "wan_bytes", _bytes,
        "on the wire, all links and both directions; not part of the system's figures"),
)  # fmt: skip
