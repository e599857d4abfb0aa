"""Charts show the tables' values: each region in its colour, gaps as gaps, one rule for scales."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from analysis.pages.report.charts.charts import latency_chart, link_charts, throughput_chart
from analysis.pages.report.fidelity_table import fidelity_table
from analysis.pages.report.formatting import EN_DASH
from analysis.pages.report.run_reader import AnalysedRun, read_record
from experiments.planned.plan_routes import carriers
from experiments.records.run_record import Times
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.report_scenario import ZERO_NS
from topologies.drawing.palette import colour_of

Made = Callable[[str], RunDirectory]


@pytest.fixture
def record(made: Made) -> AnalysedRun:
    """Read the record of the ordinary run."""
    return read_record(made("passed"))


def test_a_region_has_one_colour_in_every_chart(record: AnalysedRun) -> None:
    charts = [throughput_chart(record), latency_chart(record), *link_charts(record)]
    colours = {(line.subject, line.colour) for chart in charts for line in chart.series}
    assert colours == {(region, colour_of(i)) for i, region in enumerate(record.regions)}


def test_a_missing_bin_is_a_gap_and_not_a_zero(record: AnalysedRun) -> None:
    holed = replace(record, throughput=tuple(r for r in record.throughput if not 10 <= r["start_s"] < 12))
    line = throughput_chart(holed).series[0]
    gap = line.x.index(10.1)
    assert line.y[gap] is None
    assert line.x[gap + 1] == 12.1
    assert min(y for y in line.y if y is not None) > 1000


def test_the_axis_is_logarithmic_from_two_decades_on(record: AnalysedRun) -> None:
    assert latency_chart(record).y.kind == "linear"
    stretched = tuple({**row, "p99_ms": row["p99_ms"] * 100} for row in record.latency)
    assert latency_chart(replace(record, latency=stretched)).y.kind == "logarithmic"


@pytest.mark.parametrize(("last_s", "end_s"), [(60.4, 60), (63.0, 64)])
def test_a_long_drain_is_shown_and_a_short_one_is_not(
    record: AnalysedRun, last_s: float, end_s: float
) -> None:
    tail = {**record.throughput[0], "start_s": last_s}
    assert throughput_chart(replace(record, throughput=(*record.throughput, tail))).x.high == end_s


@pytest.mark.parametrize(("phase", "ended_s"), [("stopped_ns", 6), ("ended_ns", 6), ("stopped_ns", 60)])
def test_the_axis_ends_where_the_run_did(record: AnalysedRun, phase: str, ended_s: int) -> None:
    times = Times(**{"zero_ns": ZERO_NS, phase: ZERO_NS + ended_s * 10**9})
    rows = tuple(row for row in record.throughput if row["start_s"] < ended_s)
    ended = replace(record, run=replace(record.run, times=times), throughput=rows)
    assert throughput_chart(ended).x.high == ended_s


def test_utilisation_is_reported_against_the_links_rate(made: Made) -> None:
    charts = {chart.title: chart for chart in link_charts(read_record(made("narrow")))}
    assert charts["r0\u2013r3"].note.replace("\u00a0", " ").endswith("98 % of 4.5 Mbit/s")
    assert [each.high for each in charts["r0\u2013r3"].references] == [4_500_000 / 8]


def test_events_over_a_cut_link_stop_and_those_over_the_detour_double(record: AnalysedRun) -> None:
    charts = {chart.links[0]: chart for chart in link_charts(record, "events_per_s")}

    def at_30_s(link: str, direction: str) -> float:
        line = next(line for line in charts[link].series if line.group == direction)
        return line.y[line.x.index(30.1)] or 0.0

    assert at_30_s("r2-r3", "forward") == 0
    assert at_30_s("r0-r3", "forward") == pytest.approx(40_000, rel=0.02)
    assert at_30_s("r0-r1", "forward") == pytest.approx(20_000, rel=0.02)


def test_a_parallel_link_is_shown_with_its_name(record: AnalysedRun) -> None:
    first = record.wan_links[0]
    ways = {hop: link.name for hop, (link, _) in carriers(record.plan).items()}
    backup = replace(first, name="backup", weight=1)
    plan = replace(record.plan, links=(backup, *record.plan.links))
    both = replace(
        record,
        run=replace(record.run, plan=plan),
        fidelity=(*record.fidelity, *({**row, "link": "backup"} for row in record.fidelity)),
        throughput=(*record.throughput, *({**row, "name": "backup"} for row in record.throughput)),
    )
    assert [chart.title for chart in link_charts(both)][:2] == ["backup", f"{first.a}{EN_DASH}{first.b}"]
    shown = {cells[0].text for cells in fidelity_table(both).rows}
    assert {f"backup {first.a}→{first.b}", f"{first.a}→{first.b}"} <= shown
    assert {hop: link.name for hop, (link, _) in carriers(plan).items()} == ways
