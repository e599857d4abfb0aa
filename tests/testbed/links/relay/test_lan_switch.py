"""A frame that is handed over within the relay is treated as if the bridge had forwarded it."""

import math

import pytest

from tests.testbed.links.relay import lan, lan_disturbed
from tests.testbed.sandboxed import sandboxed

pytestmark = pytest.mark.network

WAYS = ["handed", "bridged"]
SEED = 2
MS = 1_000_000  # ns
BITS = (lan.BURST_BYTES + 42) * 8  # of a datagram, with its headers


@pytest.mark.parametrize(
    "parameters", [{"delay_us": 3000, "loss": 0.2}, {"delay_us": 3000, "jitter_us": 1000}]
)
def test_links_lose_delay_and_count_equally_on_both_paths(parameters):
    handed, bridged = (sandboxed(lan.sent_by_turns, way, parameters) for way in WAYS)
    assert handed["passed_on"] == [0, 0]
    assert min(bridged["passed_on"]) > 0
    assert handed["came"] == bridged["came"]
    assert handed["counters"] == bridged["counters"]
    assert min(handed["delays_us"]) >= 2 * (3000 - parameters.get("jitter_us", 0))


def test_a_narrow_link_queues_drops_and_paces_frames_that_are_handed_over():
    rate_bits_per_s, queue_packets = 2_000_000, 30
    observed = sandboxed(lan.into_a_narrow_link, rate_bits_per_s, queue_packets)
    sending_ns = BITS / rate_bits_per_s * 1e9
    left_meanwhile = math.ceil((observed["sent_ns"][-1] - observed["sent_ns"][0]) / sending_ns)
    came = [number for number, _, _ in observed["arrivals"]]
    assert queue_packets + 1 <= len(came) <= queue_packets + 1 + left_meanwhile
    assert came[: queue_packets + 1] == list(range(queue_packets + 1))
    assert observed["counters"]["dropped_queue"] == lan.DATAGRAMS - len(came)
    arrived = [at for _, _, at in observed["arrivals"]][: queue_packets + 1]
    assert arrived[-1] - observed["sent_ns"][0] >= queue_packets * sending_ns
    assert abs((arrived[-1] - arrived[0]) / queue_packets - sending_ns) < 0.2 * sending_ns


@pytest.mark.parametrize(("size", "at_once"), [(1600, 1), (8900, 5)])
def test_frames_too_long_for_the_second_link_are_dropped_and_counted_there(size, at_once):
    handed, bridged = (sandboxed(lan.too_long, way, size, at_once) for way in WAYS)
    assert handed == bridged
    assert (handed["came"], handed["counters"]["dropped_size"]) == (0, lan.DATAGRAMS)


def test_a_cut_of_one_direction_drops_frames_in_flight_and_leaves_the_other():
    observed = sandboxed(lan.cut_in_flight)
    assert observed["swallowed"] == lan.DATAGRAMS
    assert observed["came"] == {
        "towards": [0, lan.DATAGRAMS, lan.DATAGRAMS],
        "back": [lan.DATAGRAMS, lan.DATAGRAMS, 0],
        "beside": [lan.DATAGRAMS, lan.DATAGRAMS, lan.DATAGRAMS],
    }
    assert observed["in_order"]


def test_the_same_hosts_reach_each_other_after_any_link_changes():
    handed, bridged = (sandboxed(lan_disturbed.who_hears_whom, way, SEED, 8) for way in WAYS)
    assert handed == bridged
    assert len({str(heard) for heard in handed}) > 4  # many cases, that is


def test_frames_arrive_until_the_instant_at_which_a_port_is_down():
    assert sandboxed(lan.taken_down_under_way) == {"missing": [], "too many": []}
