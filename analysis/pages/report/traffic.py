"""Other people's traffic on the page: strips along the bottom of the timelines, and a row for each entry."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from analysis.pages.charting.chart_model import Span
from analysis.pages.report.formatting import EN_DASH, count_of, number, percent, scaled
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.tables import Table, label, quantity, table
from experiments.planned.plan import TrafficPlan

STRIP_ROWS = 3


def traffic_spans(record: AnalysedRun) -> tuple[Span, ...]:
    """When traffic was asked for, until the run ended: one span for each time on, the first with the name."""
    return tuple(
        Span(
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


def traffic_table(record: AnalysedRun) -> Table:
    """What each entry was to do, and what it did."""
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
    """`2 TCP flows`, or `UDP`."""
    return "UDP" if traffic.protocol == "udp" else count_of(traffic.flows, "TCP flow")


def traffic_times(traffic: TrafficPlan) -> str:
    """`5 to 45 s`; if it is not on all the time also for how long it is, and is not."""
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


def _rate(bits_per_s: float | None) -> str:
    return scaled(bits_per_s, "bit/s")


def _asked(row: dict[str, Any]) -> str:
    asked = row.get("asked_bits_per_s")
    return "as it can" if asked is None else _rate(asked)


def _bytes(size: float | None) -> str:
    return scaled(size, "B")


_COLUMNS = (
    label("Traffic", "name"),
    label("Way", "ends"),
    label("What", "what"),
    label("When", "when"),
    label("Asked", _asked, "while it sends, all flows together"),
    quantity("Arrived", "achieved_bits_per_s", _rate,
        "payload behind the last link, for each second that it was to send"),
    quantity("Sent", "sent_bytes", _bytes, "payload, as its sender says"),
    quantity("Received", "received_bytes", _bytes, "payload, as its receiver says"),
    quantity("Sent again", "retransmissions", number, "TCP segments, as its sender says",
        needed=lambda row: row.get("retransmissions") is not None),
    quantity("Lost", "loss", percent, "datagrams, as its receiver says",
        needed=lambda row: row.get("loss") is not None),
    quantity("On links", "wan_bytes", _bytes,
        "on the wire, all links and both directions; no figure of the system has it"),
)  # fmt: skip
