"""Link parameters take effect in virtual time; `tests/node/sim` tests delay, rate and traces."""

from random import Random

import pytest

from node.sim.wires import SimulatedLinkDirection
from testbed.backends.simulated_network import line_of
from topologies.jitter import named_quantiles
from topologies.link_parameters import LinkParameters

COUNT = 40_000


def made(**parameters: object) -> SimulatedLinkDirection:
    line = line_of(LinkParameters(delay_us=50_000, **parameters))
    return SimulatedLinkDirection(("a", "b"), line, Random(1).random)


@pytest.mark.parametrize(
    ("parameters", "share", "length"),
    [
        ({"loss": 0.1}, 0.1, 1 / 0.9),
        ({"loss": 0.1, "loss_burst_packets": 8}, 0.1, 8),
        ({"corrupt": 0.1}, 0.1, 1 / 0.9),
        ({"corrupt": 0.1, "loss": 0.1}, 0.19, 1 / 0.81),
        ({"duplicate": 0.1}, 0, 0),
    ],
)
def test_segments_are_lost_at_the_requested_rate_and_in_bursts(parameters, share, length):
    there = made(**parameters)
    lost = [there.loses(1) for _ in range(COUNT)]
    bursts = sum(now and not before for before, now in zip([False, *lost], lost, strict=False))
    assert sum(lost) / COUNT == pytest.approx(share, rel=0.12)
    assert sum(lost) / max(1, bursts) == pytest.approx(length, rel=0.12)


@pytest.mark.parametrize(
    ("distribution", "spread"),
    [("uniform", 1.0), ("normal", 1.349 / 4), ("pareto", (4 ** (1 / 3) - (4 / 3) ** (1 / 3)) / 3)],
)
def test_delays_follow_their_distribution(distribution, spread):
    """Compare the spread of the middle half, in units of the jitter."""
    there = made(jitter_us=40_000, jitter_quantiles=named_quantiles(distribution))
    delays = sorted(there.travels_us(0) for _ in range(COUNT))
    assert 10_000 <= delays[0] < delays[-1] <= 90_000
    assert (delays[3 * COUNT // 4] - delays[COUNT // 4]) / 40_000 == pytest.approx(spread, rel=0.05)
