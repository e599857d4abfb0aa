"""Links as configured are proven by their packets, and others violated: loss, duplicates, corruption, rate,
queue, delay and its distribution.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from analysis.timelines.links.fidelity import BLURRED, PROVEN, UNPROVEN, VIOLATED
from analysis.timelines.links.link_segments import link_side, match
from tests.analysis.timelines.emulated import MS, Captured, Change, S, emulate
from topologies.jitter import named_quantiles
from topologies.link_parameters import LinkParameters
from topologies.trace_files import measured_quantiles

SENT = {
    "bundles": [(S + bundle * 20 * MS, 1_000) for bundle in range(500) for _ in range(20)],
    "tcp": [(S + n * 10 * MS, 1448 * (1 + n % 12) if n % 3 else 0) for n in range(2_000)],
    "each 5 ms": [(S + n * 5 * MS, 500) for n in range(4_000)],
}
BUNDLED = {"bundles": 20, "each 5 ms": 1}
"""How many datagrams a sender hands to the kernel together."""

ALTERED = LinkParameters(delay_us=15_000, duplicate=0.03, corrupt=0.03, loss=0.02)
NARROW = LinkParameters(
    delay_us=15_000, duplicate=0.1, corrupt=0.02, rate_bits_per_s=5_000_000, queue_packets=90
)
TWICE = replace(NARROW, duplicate=1.0, corrupt=0.2, queue_packets=3, loss=0.2)
SHAKEN = replace(ALTERED, jitter_us=3_000, duplicate=0.2)
LOSSY = LinkParameters(delay_us=15_000, loss=0.05)
FULL = LinkParameters(delay_us=15_000, rate_bits_per_s=7_500_000, queue_packets=30)
UNIFORM = LinkParameters(delay_us=60_000, jitter_us=20_000, reorder=True)
NORMAL = replace(UNIFORM, jitter_quantiles=named_quantiles("normal"))
PARETO = replace(UNIFORM, jitter_quantiles=named_quantiles("pareto"))
STEADY = replace(UNIFORM, jitter_us=8_000)
AS_WIDE = replace(UNIFORM, jitter_us=6_745)
"""With the same distance between the quartiles as NORMAL."""


@cache
def over(parameters: LinkParameters, sent: str) -> Captured:
    return emulate([Change(0, parameters)], SENT[sent], bundled=BUNDLED.get(sent, 0))


def verdict(did: LinkParameters, configured: LinkParameters, sent: str) -> tuple[str, str]:
    [found] = over(did, sent).verdicts([Change(0, configured)])
    return found


@pytest.mark.parametrize("sent", ["bundles", "tcp"])
@pytest.mark.parametrize(
    "configured", [ALTERED, NARROW, TWICE, SHAKEN], ids=["lossy", "narrow", "twice", "with jitter"]
)
def test_a_link_that_duplicates_and_corrupts_as_configured_is_proven(
    configured: LinkParameters, sent: str
) -> None:
    assert verdict(configured, configured, sent) == (PROVEN, "")
    [did] = over(configured, sent).measured([Change(0, configured)])
    assert did.unclear == 0
    assert did.duplicated.count > 100
    assert did.damaged.count > 100


@pytest.mark.parametrize("seed", range(2, 6))
def test_the_original_of_each_damaged_datagram_is_found(seed: int) -> None:
    change = Change(0, NARROW)
    [found] = emulate([change], SENT["bundles"], seed=seed, bundled=20).measured([change])
    assert found.lost.chance == 0


def test_a_link_whose_random_draws_happen_to_be_alike_is_proven() -> None:
    change = Change(0, SHAKEN)
    captured = emulate([change], SENT["tcp"], seed=2)
    [found] = captured.measured([change])
    assert found.spread is not None
    assert found.spread.distance > 5 * found.spread.drawn_distance
    assert captured.verdicts([change]) == [(PROVEN, "")]


@pytest.mark.parametrize("configured", [LOSSY, FULL], ids=["lossy", "full"])
def test_datagrams_are_distinguished_by_content(configured: LinkParameters) -> None:
    sent, changes = over(configured, "bundles"), [Change(0, configured)]
    assert sent.verdicts(changes) == [(PROVEN, "")]
    [did] = sent.measured(changes)
    assert (did.packets, did.unclear, did.strays) == (len(SENT["bundles"]), 0, 0)
    assert (did.lost.chance > 400) is (configured is LOSSY)
    assert (did.lost.queue > 400) is (configured is FULL)
    alike = [
        table.set_column(table.column_names.index("digest"), "digest", pa.array(np.zeros(len(table), int)))
        for table in (sent.near, sent.far)
    ]
    [did] = replace(sent, near=alike[0], far=alike[1]).measured(changes)
    assert did.unclear > len(SENT["bundles"]) // 2


@pytest.mark.parametrize("configured", [STEADY, NORMAL, PARETO], ids=["uniform", "normal", "pareto"])
@pytest.mark.parametrize("reorder", [True, False], ids=["reorders", "keeps the order"])
def test_a_link_with_the_configured_distribution_is_proven(configured: LinkParameters, reorder: bool) -> None:
    configured = replace(configured, reorder=reorder)
    assert verdict(configured, configured, "each 5 ms") == (PROVEN, "")


@pytest.mark.parametrize(
    ("sent", "did", "changed", "reason"),
    [
        *(
            (sent, did, changed, reason)
            for sent in ("bundles", "tcp")
            for did, changed, reason in (
                (ALTERED, {"duplicate": 0.01}, "packets came twice"),
                (ALTERED, {"duplicate": 0.05}, "packets came twice"),
                (ALTERED, {"duplicate": 0.0}, "packets came twice"),
                (ALTERED, {"corrupt": 0.01}, "packets arrived damaged"),
                (ALTERED, {"corrupt": 0.05}, "packets arrived damaged"),
                (ALTERED, {"corrupt": 0.0}, "packets arrived damaged"),
                (ALTERED, {"loss": 0.04}, "packets were lost by chance"),
                (ALTERED, {"loss": 0.0}, "packets were lost by chance"),
                (ALTERED, {"delay_us": 14_000}, "median 1.00 ms late"),
                (ALTERED, {"delay_us": 16_000}, "too early"),
                (NARROW, {"rate_bits_per_s": 4_900_000}, "too early"),
                (NARROW, {"rate_bits_per_s": 5_100_000}, "rate -2.0% off"),
            )
        ),
        ("bundles", FULL, {"rate_bits_per_s": 7_350_000}, "rate +2.0% off"),
        ("bundles", FULL, {"queue_packets": 20}, "packets passed a queue that was longer"),
        ("bundles", FULL, {"queue_packets": 45}, "packets were lost by chance"),
        ("each 5 ms", AS_WIDE, {"jitter_quantiles": NORMAL.jitter_quantiles, "jitter_us": 20_000},
         "the Kolmogorov distance of its delays is 0."),
        ("each 5 ms", replace(AS_WIDE, jitter_quantiles=(-1.0, -0.5, 0.5, 1.0)),
         {"jitter_us": 9_000, "jitter_quantiles": None}, ""),
        ("each 5 ms", NORMAL, {"jitter_quantiles": UNIFORM.jitter_quantiles}, ""),
        ("each 5 ms", NORMAL, {"jitter_quantiles": PARETO.jitter_quantiles}, ""),
        ("each 5 ms", PARETO, {"delay_us": 59_000}, ""),
        ("each 5 ms", NORMAL, {"delay_us": 61_000}, ""),
    ],
)  # fmt: skip
def test_a_link_that_deviates_is_violated(sent: str, did: LinkParameters, changed: dict, reason: str) -> None:
    state, said = verdict(did, replace(did, **changed), sent)
    assert (state, reason in said) == (VIOLATED, True), said


def test_bursts_of_loss_beside_a_full_queue_are_no_violation() -> None:
    bursts = replace(NARROW, queue_packets=3, loss=0.2, loss_burst_packets=5)
    assert verdict(bursts, bursts, "bundles") == (UNPROVEN, BLURRED)


@pytest.mark.parametrize("sent", ["bundles", "tcp"])
def test_damaged_and_duplicated_packets_are_distinguished_from_lost_ones(sent: str) -> None:
    captured = over(replace(ALTERED, loss=0.0), sent)
    near, far = link_side(captured.near, 1500), link_side(captured.far, 1500)
    found = match(near, far)
    assert captured.link_direction.dropped_loss == 0
    gone = len(near.t_ns) - len(found.near)
    # A flipped length of a datagram changes two parts of its key; everything else is found again.
    assert gone <= len(found.strays) < 0.001 * len(near.t_ns)
    assert len(near.t_ns) + len(found.copies) == len(far.t_ns) - len(found.strays) + gone


def test_packets_damaged_before_the_link_do_not_count_against_it() -> None:
    damaged = over(replace(ALTERED, loss=0.0, duplicate=0.0), "tcp")
    again = replace(damaged, near=damaged.far)
    [did] = again.measured([Change(0, LinkParameters())])
    assert did.damaged.count == 0
    assert int((link_side(damaged.far, 1500).checksum < 0).sum()) > 100
    assert np.all(link_side(damaged.near, 1500).checksum >= 0)


def with_table(tmp_path, delay_us: int, rows: str) -> LinkParameters:  # type: ignore[no-untyped-def]
    (tmp_path / "delays.csv").write_text(f"quantile,delay_ms\n{rows}")
    jitter_us, quantiles = measured_quantiles(tmp_path / "delays.csv", delay_us)
    return replace(UNIFORM, delay_us=delay_us, jitter_us=jitter_us, jitter_quantiles=quantiles)


def test_a_measured_table_gives_its_own_delays(tmp_path) -> None:  # type: ignore[no-untyped-def]
    measured = with_table(tmp_path, 60_000, "0,50\n0.4,55\n0.9,58\n0.99,70\n1,110\n")
    assert verdict(measured, measured, "each 5 ms") == (PROVEN, "")
    assert measured.jitter_us == 50_000
    [did] = over(measured, "each 5 ms").measured([Change(0, measured)])
    assert did.delays is not None
    assert 50 * MS <= did.delays.min_ns < 50.1 * MS
    assert 55 * MS < did.delays.p50_ns < 56.5 * MS
    assert 65 * MS < did.delays.p99_ns < 75 * MS


@pytest.mark.parametrize("seed", [7, 52, 84])
def test_few_packets_with_an_unusual_median_prove_nothing(tmp_path, seed: int) -> None:  # type: ignore[no-untyped-def]
    steep = with_table(tmp_path, 30_000, "0,22\n0.3,25\n0.8,30\n0.95,40\n1,90\n")
    captured = emulate([Change(0, steep)], SENT["each 5 ms"][:40], seed=seed, bundled=1)
    [(state, reason)] = captured.verdicts([Change(0, steep)])
    assert state == UNPROVEN, reason
