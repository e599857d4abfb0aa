"""Delays follow the configured distribution; another one is found by its Kolmogorov distance."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from analysis.timelines.links.fidelity import PROVEN, judge
from tests.analysis.timelines.emulated import MS, Captured, Change, S, emulate, periods_of
from topologies.jitter import named_quantiles
from topologies.link_parameters import LinkParameters
from topologies.trace_files import measured_quantiles

EVERY_5_MS = [(S + number * 5 * MS, 500) for number in range(4_000)]
UNIFORM = LinkParameters(delay_us=60_000, jitter_us=20_000, reorder=True)
NORMAL = replace(UNIFORM, jitter_quantiles=named_quantiles("normal"))
PARETO = replace(UNIFORM, jitter_quantiles=named_quantiles("pareto"))
ROWS = "quantile,delay_ms\n0,50\n0.4,55\n0.9,58\n0.99,70\n1,110\n"
STEEP = "quantile,delay_ms\n0,22\n0.3,25\n0.8,30\n0.95,40\n1,90\n"


@cache
def over(parameters: LinkParameters) -> Captured:
    return emulate([Change(0, parameters)], EVERY_5_MS, bundled=1)


def verdict(did: LinkParameters, configured: LinkParameters) -> tuple[str, str]:
    changes = [Change(0, configured)]
    [period], [found] = periods_of(changes), over(did).measured(changes)
    judged = judge(period, found)
    return judged.state, judged.reason or ""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> LinkParameters:
    file = tmp_path_factory.mktemp("tables") / "delays.csv"
    file.write_text(ROWS)
    return with_table(file)


def with_table(file: Path) -> LinkParameters:
    jitter_us, quantiles = measured_quantiles(file, UNIFORM.delay_us)
    return replace(UNIFORM, jitter_us=jitter_us, jitter_quantiles=quantiles)


NARROW = replace(UNIFORM, jitter_us=8_000)


@pytest.mark.parametrize("configured", [NARROW, NORMAL, PARETO], ids=["uniform", "normal", "pareto"])
@pytest.mark.parametrize("reorder", [True, False], ids=["reorders", "keeps the order"])
def test_a_link_that_does_as_configured_is_proven(configured: LinkParameters, reorder: bool) -> None:
    configured = replace(configured, reorder=reorder)
    assert verdict(configured, configured) == (PROVEN, "")


def test_a_measured_table_gives_its_own_delays(measured: LinkParameters) -> None:
    assert verdict(measured, measured) == (PROVEN, "")
    far = over(measured).far.column("t_ns").to_numpy()
    assert measured.jitter_us == 50_000
    assert len(far) == len(EVERY_5_MS)
    [did] = over(measured).measured([Change(0, measured)])
    assert did.delays is not None
    assert 50 * MS <= did.delays.min_ns < 50.1 * MS
    assert 55 * MS < did.delays.p50_ns < 56.5 * MS
    assert 65 * MS < did.delays.p99_ns < 75 * MS


@pytest.mark.parametrize(
    ("did", "configured"),
    [
        # With the same distance between the quartiles.
        (replace(UNIFORM, jitter_us=6_745), NORMAL),
        (
            replace(UNIFORM, jitter_us=6_745, jitter_quantiles=(-1.0, -0.5, 0.5, 1.0)),
            replace(UNIFORM, jitter_us=9_000),
        ),
        (NORMAL, UNIFORM),
        (NORMAL, PARETO),
        (PARETO, replace(PARETO, delay_us=59_000)),
        (replace(NORMAL, delay_us=59_000), NORMAL),
    ],
)
def test_a_link_with_another_distribution_is_not(did: LinkParameters, configured: LinkParameters) -> None:
    state, reason = verdict(did, configured)
    assert state == "violated", reason


def test_a_distribution_of_the_same_width_is_told_by_its_distance() -> None:
    _, reason = verdict(replace(UNIFORM, jitter_us=6_745), NORMAL)
    assert reason.startswith("the Kolmogorov distance of its delays is 0.")


@pytest.mark.parametrize("seed", [7, 52, 84])
def test_few_packets_with_an_unusual_median_prove_nothing(tmp_path: Path, seed: int) -> None:
    (tmp_path / "delays.csv").write_text(STEEP)
    jitter_us, quantiles = measured_quantiles(tmp_path / "delays.csv", 30_000)
    steep = replace(UNIFORM, delay_us=30_000, jitter_us=jitter_us, jitter_quantiles=quantiles)
    captured = emulate([Change(0, steep)], EVERY_5_MS[:40], seed=seed, bundled=1)
    [period], [did] = periods_of([Change(0, steep)]), captured.measured([Change(0, steep)])
    judged = judge(period, did)
    assert judged.state == "unproven", judged.reason
