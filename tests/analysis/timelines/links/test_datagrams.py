"""A link is proven by UDP datagrams as by TCP segments, also if senders hand them over in bundles."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from analysis.timelines.links.fidelity import PROVEN, judge
from tests.analysis.timelines.emulated import MS, Captured, Change, S, emulate, periods_of
from topologies.link_parameters import LinkParameters

BUNDLED = 20
LOSSY = LinkParameters(delay_us=15_000, loss=0.05)
NARROW = LinkParameters(delay_us=15_000, rate_bits_per_s=10_000_000, queue_packets=30)
BUNDLES = [(S + bundle * 15 * MS, 1_000) for bundle in range(600) for _ in range(BUNDLED)]
"""12,000 datagrams; more than the narrow link can carry."""


both = pytest.mark.parametrize("configured", [LOSSY, NARROW], ids=["lossy", "narrow"])


@cache
def over(parameters: LinkParameters) -> Captured:
    return emulate([Change(0, parameters)], BUNDLES, bundled=BUNDLED)


def verdict(captured: Captured, configured: LinkParameters) -> tuple[str, str]:
    changes = [Change(0, configured)]
    [period], [did] = periods_of(changes), captured.measured(changes)
    found = judge(period, did)
    return found.state, found.reason or ""


@both
def test_a_link_that_does_as_configured_is_proven(configured: LinkParameters) -> None:
    assert verdict(over(configured), configured) == (PROVEN, "")
    [did] = over(configured).measured([Change(0, configured)])
    assert (did.packets, did.unclear, did.strays) == (len(BUNDLES), 0, 0)
    assert (did.lost.chance > 500) is (configured is LOSSY)
    assert (did.lost.queue > 500) is (configured is NARROW)


@pytest.mark.parametrize(
    ("did", "configured", "reason"),
    [
        (LOSSY, replace(LOSSY, loss=0.03), "packets were lost by chance"),
        (LOSSY, replace(LOSSY, delay_us=14_000), "median 1.00 ms late"),
        (LOSSY, replace(LOSSY, delay_us=16_000), "too early"),
        (NARROW, replace(NARROW, rate_bits_per_s=9_800_000), "rate +2.0% off"),
        (NARROW, replace(NARROW, rate_bits_per_s=10_200_000), "rate -2.0% off"),
        (NARROW, replace(NARROW, queue_packets=20), "packets passed a queue that was longer"),
        (NARROW, replace(NARROW, queue_packets=45), "packets were lost by chance"),
    ],
)
def test_a_link_that_does_otherwise_is_not(
    did: LinkParameters, configured: LinkParameters, reason: str
) -> None:
    assert reason in verdict(over(did), configured)[1]


@both
def test_datagrams_that_nothing_tells_apart_are_unclear(configured: LinkParameters) -> None:
    packets = over(configured)
    nothing = [
        table.set_column(
            table.column_names.index("digest"), "digest", pa.array(np.zeros(len(table), np.int64))
        )
        for table in (packets.near, packets.far)
    ]
    [did] = replace(packets, near=nothing[0], far=nothing[1]).measured([Change(0, configured)])
    assert did.unclear > len(BUNDLES) // 2
