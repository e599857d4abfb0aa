"""A link that duplicates or damages packets is proven by an interval, as one that loses them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from analysis.timelines.links.fidelity import BLURRED, PROVEN, UNPROVEN, judge
from analysis.timelines.links.link_segments import link_side, match
from tests.analysis.timelines.emulated import MS, Captured, Change, S, emulate, periods_of
from topologies.link_parameters import LinkParameters

BOTH = LinkParameters(delay_us=15_000, duplicate=0.03, corrupt=0.03, loss=0.02)
NARROW = LinkParameters(
    delay_us=15_000, duplicate=0.1, corrupt=0.02, rate_bits_per_s=5_000_000, queue_packets=90
)
TWICE = replace(NARROW, duplicate=1.0, corrupt=0.2, queue_packets=3, loss=0.2)
SHAKEN = replace(BOTH, jitter_us=3_000, duplicate=0.2)
DATAGRAMS = [(S + bundle * 20 * MS, 1_000) for bundle in range(500) for _ in range(20)]
STREAM = [(S + n * 10 * MS, 1448 * (1 + n % 12) if n % 3 else 0) for n in range(2_000)]
ARRIVALS = {"udp": DATAGRAMS, "tcp": STREAM}


@cache
def over(parameters: LinkParameters, transport: str) -> Captured:
    bundled = 20 if transport == "udp" else 0
    return emulate([Change(0, parameters)], ARRIVALS[transport], bundled=bundled)


def verdict(did: LinkParameters, configured: LinkParameters, transport: str) -> tuple[str, str]:
    changes = [Change(0, configured)]
    [period], [found] = periods_of(changes), over(did, transport).measured(changes)
    judged = judge(period, found)
    return judged.state, judged.reason or ""


each = pytest.mark.parametrize("transport", ["udp", "tcp"])


@each
@pytest.mark.parametrize(
    "configured", [BOTH, NARROW, TWICE, SHAKEN], ids=["lossy", "narrow", "twice", "with jitter"]
)
def test_a_link_that_does_as_configured_is_proven(configured: LinkParameters, transport: str) -> None:
    assert verdict(configured, configured, transport) == (PROVEN, "")
    [did] = over(configured, transport).measured([Change(0, configured)])
    assert did.unclear == 0
    assert did.duplicated.count > 100
    assert did.damaged.count > 100


@each
@pytest.mark.parametrize(
    ("did", "configured", "reason"),
    [
        (BOTH, replace(BOTH, duplicate=0.01), "packets came twice"),
        (BOTH, replace(BOTH, duplicate=0.05), "packets came twice"),
        (BOTH, replace(BOTH, duplicate=0.0), "packets came twice"),
        (BOTH, replace(BOTH, corrupt=0.01), "packets arrived damaged"),
        (BOTH, replace(BOTH, corrupt=0.05), "packets arrived damaged"),
        (BOTH, replace(BOTH, corrupt=0.0), "packets arrived damaged"),
        (BOTH, replace(BOTH, loss=0.04), "packets were lost by chance"),
        (BOTH, replace(BOTH, loss=0.0), "packets were lost by chance"),
        (BOTH, replace(BOTH, delay_us=14_000), "median 1.00 ms late"),
        (BOTH, replace(BOTH, delay_us=16_000), "too early"),
        (NARROW, replace(NARROW, rate_bits_per_s=4_900_000), "too early"),
        (NARROW, replace(NARROW, rate_bits_per_s=5_100_000), "rate -2.0% off"),
    ],
)
def test_a_link_that_does_otherwise_is_not(
    did: LinkParameters, configured: LinkParameters, reason: str, transport: str
) -> None:
    assert reason in verdict(did, configured, transport)[1]


def test_bursts_of_loss_beside_a_full_queue_are_no_violation() -> None:
    bursts = replace(NARROW, queue_packets=3, loss=0.2, loss_burst_packets=5)
    assert verdict(bursts, bursts, "udp") == (UNPROVEN, BLURRED)


@each
def test_damaged_and_copied_packets_are_told_from_lost_ones(transport: str) -> None:
    captured = over(replace(BOTH, loss=0.0), transport)
    near, far = link_side(captured.near, 1500), link_side(captured.far, 1500)
    found = match(near, far)
    assert captured.link_direction.dropped_loss == 0
    gone = len(near.t_ns) - len(found.near)
    # A flipped length of a datagram changes two parts of its key; everything else is found again.
    assert gone <= len(found.strays) < 0.001 * len(near.t_ns)
    assert len(near.t_ns) + len(found.copies) == len(far.t_ns) - len(found.strays) + gone


def test_what_was_damaged_before_the_link_is_not_held_against_it() -> None:
    damaged = over(replace(BOTH, loss=0.0, duplicate=0.0), "tcp")
    again = Captured(damaged.far, damaged.far, damaged.link_direction)
    plain = LinkParameters()
    [did] = again.measured([Change(0, plain)])
    assert did.damaged.count == 0
    assert int((link_side(damaged.far, 1500).checksum < 0).sum()) > 100
    assert np.all(link_side(damaged.near, 1500).checksum >= 0)
