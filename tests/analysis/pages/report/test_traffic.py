"""Background traffic on the page: a strip for each period, a row for each entry, excluded from the system's
cost.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.pages.report.charts.charts import link_charts, spans, throughput_chart
from analysis.pages.report.formatting import EN_DASH
from analysis.pages.report.page import render
from analysis.pages.report.run_reader import AnalysedRun, read_record
from analysis.pages.report.traffic import traffic_spans, traffic_table
from analysis.pages.systems.numbers import FIGURES
from experiments.planned.changes import LinkDirectionName
from experiments.planned.plan import TRAFFIC_ROLE, BurstPlan, HostPlan, TrafficPlan
from experiments.records.observations import LinkCounts
from experiments.records.rundir import RunDirectory

BACKUP = TrafficPlan(
    "backup",
    "r2-traffic",
    "r3-traffic",
    "tcp",
    2,
    None,
    5_000_000,
    25_000_000,
    (BurstPlan(5_000_000, 20, 5201),),
)
VIDEO = TrafficPlan(
    "video", "r0-traffic", "r2-traffic", "udp", 1, 8_000_000, 50_000_000, 60_000_000,
    tuple(BurstPlan(at_s * 1_000_000, 2, 5202 + n) for n, at_s in enumerate((50, 55))),
)  # fmt: skip
FIGURES_OF_BACKUP = {
    "asked_bits_per_s": None, "achieved_bits_per_s": 4_000_000, "sent_bytes": 11_000_000,
    "received_bytes": 10_000_000, "arrived_bytes": 10_000_000, "retransmissions": 12, "loss": None,
    "wan_bytes": 11_500_000,
}  # fmt: skip


@pytest.fixture
def record(made: Callable[[str], RunDirectory]) -> AnalysedRun:
    """Return the ordinary run, with traffic."""
    found = read_record(made("passed"))
    hosts = tuple(HostPlan(f"r{n}-traffic", f"r{n}", TRAFFIC_ROLE, 0, f"10.{n}.9.9", "") for n in (0, 2, 3))
    plan = replace(found.plan, traffic=(BACKUP, VIDEO), hosts=(*found.plan.hosts, *hosts))
    rows = tuple(
        {
            **row,
            "traffic_bytes_per_s": 500.0 if row["name"] == "r2-r3" and row["direction"] == "forward" else 0.0,
        }
        if row["scope"] == "link"
        else row
        for row in found.throughput
    )
    summary = {**found.summary, "traffic": {"backup": FIGURES_OF_BACKUP}}
    return replace(found, run=replace(found.run, plan=plan), throughput=rows, summary=summary)


def test_each_time_on_is_a_strip_and_the_first_one_has_the_name(record: AnalysedRun) -> None:
    shown = [(span.label, span.start, span.end, span.row) for span in traffic_spans(record)]
    assert shown == [("backup r2→r3", 5, 25, 0), ("video r0→r2", 50, 52, 1), ("", 55, 57, 1)]
    every = spans(record)
    assert [span.other for span in every] == [False, True, True, True], (
        "faults come first, and are none of it"
    )
    assert throughput_chart(record).spans == every


def test_a_row_has_planned_and_measured_traffic(record: AnalysedRun) -> None:
    table = traffic_table(record)
    backup, video = (
        {
            column.title: cell.text.replace("\u00a0", " ")
            for column, cell in zip(table.columns, row, strict=True)
        }
        for row in table.rows
    )
    assert backup == {
        "Traffic": "backup", "Path": "r2 → r3", "What": "2 TCP flows", "When": f"5{EN_DASH}25 s",
        "Configured": "unlimited", "Arrived": "4 Mbit/s", "Sent": "11 MB", "Received": "10 MB",
        "Retransmitted": "12", "On links": "11.5 MB",
    }  # fmt: skip
    assert (video["What"], video["When"]) == ("UDP", f"50{EN_DASH}60 s, 2 s on, 3 s off")
    assert video["Arrived"] == EN_DASH, "nothing is known of it"


def test_a_links_chart_has_traffic_as_a_dotted_line_and_the_common_load(record: AnalysedRun) -> None:
    charts = {chart.key: chart for chart in link_charts(record)}
    busy, other = charts["link-r2-r3"], charts["link-r0-r1"]
    assert [one.group for one in busy.series if one.label == "background"] == ["forward"]
    assert "with background traffic" in busy.note
    assert not [one for one in other.series if one.label == "background"]
    assert "background" not in other.note


def test_only_pages_of_runs_with_traffic_have_its_section(
    record: AnalysedRun, reported: Callable[[str], RunDirectory], tmp_path: Path
) -> None:
    assert 'id="table-traffic"' in render(record, RunDirectory(tmp_path))
    assert 'id="traffic"' not in reported("passed").report_html.read_text()


def test_bytes_per_delivery_exclude_traffic(record: AnalysedRun) -> None:
    (wan,) = (figure for figure in FIGURES if figure.title == "WAN bytes")
    link = record.wan_links[0].name
    zeros: dict[str, Any] = dict.fromkeys(
        ("dropped_loss", "dropped_queue", "dropped_blackhole", "dropped_kernel"), 0
    )
    counts = LinkCounts(link=link, direction=LinkDirectionName.FORWARD, frames=9, bytes=12_500_000, **zeros)
    summary = {**record.summary, "events": {"delivered": 1000}}
    counted = replace(record, run=replace(record.run, counters=(counts,)), summary=summary)
    assert wan.value(counted) == (12_500_000 - 11_500_000) / 1000
    unknown = {**FIGURES_OF_BACKUP, "wan_bytes": None}
    assert wan.value(replace(counted, summary={**summary, "traffic": {"backup": unknown}})) is None
    assert wan.value(replace(counted, summary={**summary, "traffic": {}})) == 12_500_000 / 1000
