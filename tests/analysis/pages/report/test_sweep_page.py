"""A sweep's page and figures: the paper's figures for which it has points, numbers, and failed runs."""

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.pages.report.charts.sweep_charts import SweepChart, common_unit, in_unit, quantity
from analysis.pages.report.sweep_page import failed, render, sweep_charts, verdict, write_sweep_report
from analysis.sweeps import SweepResults, read_sweep
from analysis.timelines import schemas
from analysis.timelines.tasks.results import write
from experiments.campaigns.sweepdir import SweepDirectory
from testbed.sweeps import with_expectations_judged
from tests.analysis.pages.report.synthetic_sweep import SWEEPS, outages, plan, summary, write_sweep

Made = Callable[[str], SweepDirectory]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a function that makes a named sweep's directory once. Tests must not change it."""
    parent, found = tmp_path_factory.mktemp("sweeps"), {}

    def sweep(name: str) -> SweepDirectory:
        if name not in found:
            found[name] = SWEEPS[name](parent / name)
        return found[name]

    return sweep


def drawn(sweep: SweepResults) -> dict[str, SweepChart]:
    return {chart.key: chart for chart in sweep_charts(sweep)}


def test_figure_4_has_a_line_for_each_number_of_proxies_with_a_band_over_repeats(made: Made) -> None:
    found = drawn(read_sweep(made("throughput")))
    assert list(found) == ["figure-4a", "figure-4b"]
    whole = found["figure-4a"]
    assert [line.name for line in whole.series] == ["1 proxy", "2 proxies", "3 proxies"]
    assert whole.series[0].x == (1, 2, 3, 4, 6)
    for line in whole.series:
        assert all(low < y < high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    assert (whole.references[0].low, whole.references[0].high) == (2.6e6, 2.7e6)
    points = {row.what: row.ours for row in whole.comparisons}
    assert len(points) == 3 + 3 * 5
    assert points["Peak throughput, 3 proxies: median, range"] in {
        points[name] for name in points if name[0] == "3"
    }
    assert all(text.endswith("runs: 5)") for text in points.values())
    per_driver = found["figure-4b"].series[2]
    assert per_driver.y[1] == pytest.approx(whole.series[2].y[1] / 6)  # 2 drivers at each of 3 proxies


def test_figure_5b_has_a_line_for_each_fanout_and_what_was_offered(made: Made) -> None:
    (found,) = drawn(read_sweep(made("fanout-shuffle"))).values()
    assert [line.name for line in found.series] == ["F = 1", "F = 2", "F = 4", "F = 8", "F = 16"]
    assert found.series[0].x == (10, 30, 100, 300)
    assert found.references[0].low == 2.592e6
    assert (found.comparisons[0].paper_text, found.comparisons[0].ours) == ("4", "4")
    overloaded = found.comparisons[2].ours
    assert "F = 2 with 30, 100, 300 ms; F = 8" in overloaded
    assert "F = 4" not in overloaded


def test_figure_6_has_a_plot_for_each_source_region_with_loads_in_order(made: Made) -> None:
    found = drawn(read_sweep(made("latency-load")))
    assert list(found) == ["figure-6-0", "figure-6-1", "figure-6-2"]
    first = found["figure-6-0"]
    assert [line.name for line in first.series] == ["F = 2", "F = 4", "F = 8"]
    assert first.series[1].x[:2] == pytest.approx((432_000, 1_296_000))
    assert first.references[0].low == 300
    assert first.comparisons[0].ours.startswith("207")  # of the calm ones only


def test_figure_7_has_the_measures_of_the_papers_outage(tmp_path: Path) -> None:
    def level(at_s: float) -> float:
        """Throughput: a dip for a second, then above normal for two, and a glitch after the link is back."""
        return 0.8 if 19 <= at_s < 20 else 1.1 if 20 <= at_s < 22 else 0.5 if at_s == 41 else 1.0

    def delay_ms(region: str, at_s: float) -> float:
        return 200 if region == "r0" or not 19 <= at_s < 41 else 900 if at_s < 20 else 210

    def tables(path: Path) -> None:
        bins = [round(number * 0.2, 6) for number in range(250)]
        rates = [
            {
                "scope": "region",
                "name": f"r{region}",
                "start_s": at_s,
                "bin_s": 0.2,
                "events_per_s": 1e6 * level(at_s),
            }
            for region in range(4)
            for at_s in bins
        ]
        times = ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms")
        delays = [
            {
                "origin": region,
                "start_s": at_s,
                "bin_s": 0.2,
                "count": 9,
                **dict.fromkeys(times, delay_ms(region, at_s)),
            }
            for region in ("r0", "r1", "r2", "r3")
            for at_s in bins
        ]
        for name, rows, schema in (
            ("throughput", rates, schemas.THROUGHPUT),
            ("latency", delays, schemas.LATENCY),
        ):
            write(pa.Table.from_pylist(rows, schema=schema), path / f"analysis/{name}.parquet")

    faults = [
        {"name": kind, "kind": kind, "target": "r2-r3", "requested_s": at_s, "applied_s": at_s}
        for kind, at_s in (("cut", 19.0), ("restore", 41.0))
    ]
    sweep = write_sweep(
        tmp_path / "x",
        "outage",
        {},
        lambda values, seed: (plan(4, 1), summary(1e6) | {"faults": faults}, tables),
        figures=[7, 8],
    )
    charts = drawn(read_sweep(sweep))
    assert list(charts) == ["figure-7a", "figure-7b"]
    assert [line.name for line in charts["figure-7b"].series] == ["from r0", "from r2"]
    assert [
        (each.ours.replace("\xa0", " "), each.paper_text) for each in charts["figure-7a"].comparisons
    ] == [
        ("at t = 19 s, to 80 % of normal", "at t = 19 s"),
        ("at t = 20 s", "shortly after t = 20 s"),
        ("1.4 s, until 80% of the dip is made up", "about 5 s"),
        ("90 % to 100 % of normal over a second", "after t = 41 s"),
        ("200 ms and 200 ms", "around 200 ms"),
        ("at most 900 ms, then 210 ms", "significantly higher, then slightly higher than before"),
        ("at most 200 ms, then 200 ms", "no change reported"),
    ]


@pytest.mark.slow
def test_figures_9_and_10_are_logarithmic_and_show_savings(made: Made) -> None:
    found = drawn(read_sweep(made("collection")))
    assert list(found) == ["figure-9", "figure-10a", "figure-10b"]
    assert all(chart.x.kind == chart.y.kind == "logarithmic" for chart in found.values())
    bounded = found["figure-10b"]
    assert [line.name for line in bounded.series] == ["zipf 1.1", "zipf 1.5", "zipf 2"]
    assert bounded.series[0].x[-1] == 1_000_400
    assert re.fullmatch(r"62\s% of 100\s000, 69\s% of 1\smillion events", bounded.comparisons[0].ours)
    by_age = found["figure-9"]
    assert [line.name for line in by_age.series][:2] == ["skew 1.1, λ = 10", "skew 1.1, λ = 200"]
    assert by_age.series[1].y[0] > by_age.series[0].y[0]  # "higher for larger λ"
    slopes = {each.what: float(each.ours) for each in by_age.comparisons}
    assert slopes["Slope, skew 2, λ = 200"] < slopes["Slope, skew 1.1, λ = 200"] < 0  # "steeper"


def test_a_sweep_without_a_paper_is_drawn_along_its_longest_axis(made: Made) -> None:
    found = drawn(read_sweep(made("generic")))
    assert list(found) == ["throughput", "latency"]
    assert found["throughput"].x.label == "workload.rate"
    assert [line.name for line in found["throughput"].series] == ["event_size 10B", "event_size 1000B"]
    assert found["throughput"].series[0].x == (1000, 5000, 20000)


def test_a_papers_figure_without_its_points_is_not_drawn(tmp_path: Path) -> None:
    def make(values: object, seed: int) -> object:
        return plan(3, 1, parameters={"fanout": 4, "shuffle_time_us": 30_000}), summary(1e6), None

    sweep = read_sweep(write_sweep(tmp_path / "x", "fanout-shuffle", {}, make, figures=["5b"]))
    assert sweep_charts(sweep) == ()


def test_values_with_units_are_numbers() -> None:
    found = list(map(quantity, (4, "30ms", "20000/s", "1.5")))
    assert found == [(4.0, ""), (30.0, "ms"), (20_000.0, "/s"), (1.5, "")]
    assert list(map(quantity, ("three", True, None))) == [None] * 3


@pytest.mark.parametrize(
    ("values", "unit", "wanted"),
    [
        (["250ms", "500ms", "1s"], "ms", [250, 500, 1000]),
        (["2s", "1min"], "s", [2, 60]),
        (["1kB", "1KiB"], "kB", [1, 1.024]),
        (["5 ms", 10], None, None),
        (["1s", "1mbit"], None, None),
        ([1, 2.5], "", [1, 2.5]),
        ([], None, None),
    ],
)
def test_values_of_one_axis_are_drawn_in_one_unit(
    values: list[object], unit: str | None, wanted: list[float] | None
) -> None:
    assert common_unit(values) == unit
    assert unit is None or [in_unit(value, unit) for value in values] == wanted


def test_failed_seeds_are_listed_with_reason_and_replay_command(made: Made) -> None:
    sweep = read_sweep(made("nemesis"))
    assert (verdict(sweep).word, verdict(sweep).passed, verdict(sweep).runs) == ("Unfinished", 37, 40)
    first, second = failed(sweep)
    assert (first.seed, first.why) == (7, "events.lost == 0 (it is 120)")
    assert first.replay == "cutset run nemesis --seed 7 --repeat 1 --on simulator"
    assert second.seed == 23


@pytest.mark.parametrize("name", list(SWEEPS))
@pytest.mark.slow
def test_the_page_is_self_contained_and_complete(made: Made, name: str) -> None:
    directory = made(name)
    page = write_sweep_report(directory).read_text()
    assert not re.search(r"(src|href)=[\"']?https?:", page)
    text = unescape(re.sub(r"<[^>]+>", " ", page))
    for chart in sweep_charts(read_sweep(directory)):
        assert chart.title in text
        assert all(directory.figure(chart.key, form).stat().st_size > 1000 for form in ("png", "svg"))
        assert all(each.ours in text and each.paper_text in text for each in chart.comparisons)
    assert page.count("<tr>") > len(directory.read().runs)


def test_writing_again_gives_the_same_bytes(made: Made) -> None:
    directory = made("generic")
    before = write_sweep_report(directory).read_bytes(), directory.figure("latency", "svg").read_bytes()
    assert (
        write_sweep_report(directory).read_bytes(),
        directory.figure("latency", "svg").read_bytes(),
    ) == before


def test_recovery_and_losses_over_the_length_of_an_outage_beside_tcps_next_try(tmp_path):
    sweep = read_sweep(outages(tmp_path / "one"))
    charts = {chart.key: chart for chart in sweep_charts(sweep)}
    flows, retries = charts["convergence"].series
    assert charts["convergence"].x.kind == "logarithmic"
    assert (flows.x, flows.y) == ((2.0, 10.0, 60.0), (0.6, 2.6, 15.1))
    assert (retries.name, retries.y) == ("TCP retransmits", (0.5, 2.5, 15.0))
    assert charts["outage-losses"].series[0].y == (20.0, 100.0, 600.0)
    several = read_sweep(outages(tmp_path / "two", ("nats", "zenoh")))
    [chart] = [chart for chart in sweep_charts(several) if chart.key == "convergence"]
    assert [line.name for line in chart.series] == ["nats", "zenoh"]


def test_times_until_streams_flow_again_are_drawn_as_medians_by_what_was_swept(made: Made) -> None:
    sweep = read_sweep(made("zoo"))
    (chart,) = [chart for chart in sweep_charts(sweep) if chart.key == "convergence"]
    assert chart.x.names == ("ring-3", "star-4")
    whole, less = chart.series
    assert (whole.y, whole.low, whole.high) == ((1.0, 3.0), (0.5, 2.5), (2.0, 4.0))
    assert less.y == (0.9, 2.9)
    page = unescape(write_sweep_report(sweep.directory).read_text())
    assert re.search(r"<td>total</td><td[^>]*>star-4</td><td[^>]*>3</td>", page)
    assert sweep.directory.figure("convergence", "png").stat().st_size > 10_000


def test_closed_connections_are_listed_with_time_and_end(tmp_path):
    sweep = outages(tmp_path / "sweep")
    assert "given up" not in render(read_sweep(sweep), ())
    row = {"link": "r1-r2", "from_s": 5.0, "to_s": 7.0, "client": "r2-broker-0", "server": "r1-broker-0",
           "port": 1883, "open": True, "tries": 4}  # fmt: skip
    gone = {"ended_s": 12.5, "ended_by": "r1-broker-0", "ended_how": "RST"}
    first, second, _ = sweep.read().runs
    for run, rows in ((first, [row, row | gone]), (second, [row])):
        table = pa.Table.from_pylist(rows, schema=schemas.TCP_OUTAGES)
        write(table, sweep.run_of(run).table("tcp_outages"))
    page = unescape(render(read_sweep(sweep), ()))
    assert "1 of 2 after 7.50\u00a0s by r1-broker-0 (RST)" in page
    assert re.search(r"<td[^>]*>0 of 1</td>", page)


def test_expectations_on_all_runs_are_evaluated_and_shown(tmp_path: Path) -> None:
    directory = write_sweep(
        tmp_path / "sweep",
        "judged",
        {"roles.driver": [1, 2]},
        lambda values, seed: (
            plan(1, values["roles.driver"]),
            summary(1000.0 * values["roles.driver"]),
            None,
        ),
    )
    expected = ["min(throughput.events_per_s) by roles.driver >= 2000", "sum(events.lost) == 0"]
    record = directory.read()
    asked = replace(record, experiment={**record.experiment, "expect_sweep": expected})
    directory.write(with_expectations_judged(asked, directory))
    sweep = read_sweep(directory)
    assert [each.held for each in sweep.record.expectations] == [False, True]
    assert not sweep.record.passed
    assert verdict(sweep).word == "Not all held"
    assert verdict(sweep).passed == 2
    page = unescape(write_sweep_report(directory).read_text()).replace("\xa0", " ")
    assert "1 of 2 expectations of all runs together did not hold" in page
    assert re.search(r"roles.driver=1</td>.*1010.*did not hold", page, re.DOTALL)
    assert "all runs</td>" in page


def test_a_sweep_whose_runs_are_not_all_analysed_is_not_judged(tmp_path: Path) -> None:
    directory = write_sweep(
        tmp_path / "sweep", "torn", {"roles.driver": [1, 2]},
        lambda values, seed: (plan(1, 1), summary(1.0), None) if values["roles.driver"] == 1 else None,
    )  # fmt: skip
    record = directory.read()
    asked = replace(record, experiment={**record.experiment, "expect_sweep": ["sum(events.lost) == 0"]})
    assert with_expectations_judged(asked, directory).expectations == ()
