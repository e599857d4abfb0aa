"""Division of memory among the rings of the relay's ports. Allocates no rings."""

import pytest

from testbed.links.relay.ring_sizes import AWAY_US, KINDS, PAUSE_US, RINGS_BYTES_MAX, port_blocks
from topologies.link_parameters import LinkParameters

GIGABIT = 1_000_000_000


def at(rate_bits_per_s: int | None) -> LinkParameters:
    return LinkParameters(delay_us=15_000, rate_bits_per_s=rate_bits_per_s)


def ring_bytes(blocks: tuple[int, ...]) -> int:
    return sum(count * kind.block_bytes for count, kind in zip(blocks, KINDS, strict=True))


@pytest.mark.parametrize("ports", [2, 44, 60, 128, 200])
def test_all_rings_share_a_bounded_memory(ports):
    blocks = port_blocks([at(GIGABIT)] * (ports - 2) + [at(None), at(10 * GIGABIT)])
    assert sum(map(ring_bytes, blocks)) <= RINGS_BYTES_MAX
    assert all(min(each) >= 1 for each in blocks)


def test_rings_of_few_ports_hold_their_links_rate_while_the_relay_is_suspended():
    (gigabit, ten) = port_blocks([at(GIGABIT), at(2 * GIGABIT)])
    for count, more, kind in zip(gigabit, ten, KINDS, strict=True):
        away_bytes = GIGABIT * PAUSE_US // 8_000_000
        assert count * kind.block_slots * kind.usual_bytes >= away_bytes
        assert more >= 2 * count - 1


def test_the_ring_of_a_narrow_link_holds_its_queue():
    (narrow,) = port_blocks([at(1_000_000)])
    assert narrow[0] * KINDS[0].block_slots >= 250


def test_the_ring_of_a_slow_link_holds_a_queue_and_a_long_suspension():
    link = LinkParameters(delay_us=15_000, rate_bits_per_s=10_000_000, queue_packets=400)
    (slow,) = port_blocks([link])
    frames = 400 + 10_000_000 * AWAY_US // 8_000_000 // 1_514
    assert slow[0] * KINDS[0].block_slots >= frames
    assert ring_bytes(slow) < 8 << 20


def test_rings_of_many_ports_hold_a_process_sending_to_forty_peers():
    for count, kind in list(zip(port_blocks([at(GIGABIT)] * 360)[0], KINDS, strict=True))[:2]:
        assert count * kind.block_slots >= 1.5 * 40
