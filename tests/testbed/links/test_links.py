"""The specified behaviour of links, compared with packets that crossed one, for every kind of link."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import log, sqrt
from statistics import median
from typing import Any

import pytest

from experiments.planned.changes import LinkDirectionName
from tests.testbed.links import scenarios
from tests.testbed.links.probes import Arrival
from tests.testbed.sandboxed import sandboxed
from topologies.jitter import deviation, named_quantiles
from topologies.link_trace import RateCurve

pytestmark = pytest.mark.network

MS = 1_000_000  # ns
SIGMAS = 5  # of a binomial distribution: a test fails by chance once in a million runs
TOLERANCE_MS = 10  # of a change's applied time
RATES = [
    8_000_000,
    4_000_000,
    *[0] * 10,
    6_000_000,
]  # of a trace's steps: so long a pause that late ones show it
PAUSES_NS = [(turn * 1300 * MS + 200 * MS, turn * 1300 * MS + 1200 * MS) for turn in range(2)]
DELAYS_US = [10_000, 30_000, 20_000]
SENDING_NS = 8 * MS  # of 1000 bytes at 1 Mbit/s, headers left out


def arrivals(observed: dict[str, Any]) -> list[Arrival]:
    return [Arrival(*row) for row in observed["arrivals"]]


def delays_us(observed: dict[str, Any]) -> list[float]:
    return [arrival.delay_us for arrival in arrivals(observed)]


def is_in_order(observed: dict[str, Any]) -> bool:
    return all(a.number < b.number for a, b in pairwise(arrivals(observed)))


def assert_binomial(count: int, of: int, probability: float) -> None:
    spread = SIGMAS * sqrt(of * probability * (1 - probability))
    assert abs(count - of * probability) <= spread, (
        f"{count} of {of}, expected {probability:.0%} +- {spread:.0f}"
    )


def test_a_packet_is_never_early_and_the_median_is_close_on_an_idle_link(kind):
    delays_ms = [0, 5, 15, 40, 100]
    observed = sandboxed(scenarios.idle_delays, kind, delays_ms)
    # If even a plain timer is late (user-mode Linux), a link's may be late, too.
    allowed_us = 1000 + observed["timer_late_us"]
    for asked_ms, link in zip(delays_ms, observed["links"], strict=True):
        measured = delays_us(link)
        assert len(measured) == len(link["sent_ns"])
        assert min(measured) >= asked_ms * 1000
        assert median(measured) <= asked_ms * 1000 + allowed_us
        assert is_in_order(link)


@pytest.mark.parametrize("towards", list(LinkDirectionName))
def test_a_direction_that_another_machine_shapes_is_forwarded_unaltered(kind, towards):
    observed = sandboxed(scenarios.one_way, kind, towards, 20)
    other = next(direction for direction in LinkDirectionName if direction is not towards)
    shaped_us, plain_us = observed["delays_us"][towards], observed["delays_us"][other]
    assert len(shaped_us) == len(plain_us) == 100
    assert min(shaped_us) >= 20_000
    assert min(plain_us) < 10_000
    assert observed["intact"] == [True, True]
    assert observed["counted"] == [towards]


def test_jitter_spreads_the_delay_and_keeps_the_order(kind):
    observed = sandboxed(scenarios.jitter, kind, 20, 5, False)
    measured = delays_us(observed)
    assert len(measured) == len(observed["sent_ns"])
    assert min(measured) >= 15_000
    assert max(measured) - min(measured) > 2_000
    assert is_in_order(observed)


@pytest.mark.parametrize("distribution", ["normal", "pareto"])
def test_jitter_follows_its_distribution(kind, distribution):
    observed = sandboxed(scenarios.jitter, kind, 50, 40, True, distribution)
    measured_us, late_us = sorted(delays_us(observed)), 1000 + observed["timer_late_us"]
    count = len(measured_us)
    assert count == 500
    bound = sqrt(log(2 / 1e-6) / (2 * count))  # of the Kolmogorov distance (Massart, 1990)

    def distance(name: str) -> float:
        """Return the distance from a distribution, for which packets may be late."""
        table_us = sorted(
            50_000 + 40_000 * deviation(named_quantiles(name), n / 10_000) for n in range(10_001)
        )
        early = max(
            (n + 1) / count - bisect_right(table_us, each) / 10_001 for n, each in enumerate(measured_us)
        )
        late = max(
            bisect_left(table_us, each - late_us) / 10_001 - n / count for n, each in enumerate(measured_us)
        )
        return max(early, late)

    assert distance(distribution) <= bound
    assert distance("uniform") > bound


@pytest.mark.parametrize(("loss", "per_frame"), [(0.1, 1), (0.01, 40)], ids=["offloads off", "offloads on"])
def test_datagrams_are_lost_one_by_one_however_they_are_sent(kind, loss, per_frame):
    observed = sandboxed(scenarios.datagram_loss, kind, loss, per_frame, 8_000 // per_frame)
    sent = len(observed["sent_ns"])
    lost = sent - len(observed["arrivals"])
    assert_binomial(lost, sent, loss)
    counters = observed["counters"]
    assert counters["dropped_loss"] == lost
    assert counters["frames"] == sent - lost
    assert counters["dropped_kernel"] == 0
    assert is_in_order(observed)


def test_datagrams_come_twice_and_the_receiver_discards_damaged_ones(kind):
    duplicate, corrupt, per_frame = 0.1, 0.1, 40
    observed = sandboxed(scenarios.altered, kind, duplicate, corrupt, per_frame, 8_000 // per_frame)
    sent_ns, through = observed["sent_ns"], arrivals(observed)
    assert all(arrival.sent_ns == sent_ns[arrival.number] for arrival in through)
    passed, sent = 1 - corrupt, len(sent_ns)
    if kind == "netem":  # bits of the sender's Ethernet address matter to nothing: 6 of 142 bytes
        passed += corrupt * 6 / 142
    came = Counter(arrival.number for arrival in through)
    assert max(came.values()) == 2
    assert_binomial(sum(count == 2 for count in came.values()), sent, duplicate * passed**2)
    assert_binomial(sent - len(came), sent, (1 - passed) * (1 - duplicate * passed))


def test_datagrams_are_lost_in_bursts_of_the_requested_length(kind):
    loss, burst, per_frame = 0.1, 8, 1
    observed = sandboxed(scenarios.datagram_loss, kind, loss, per_frame, 12_000 // per_frame, burst)
    sent = len(observed["sent_ns"])
    came = {arrival.number for arrival in arrivals(observed)}
    lost = sent - len(came)
    assert observed["counters"]["dropped_loss"] == lost
    bursts = sum(number not in came and number - 1 in came for number in range(1, sent))
    alike = 1 - 1 / burst - loss / (1 - loss) / burst
    spread = SIGMAS * sqrt(sent * loss * (1 - loss) * (1 + alike) / (1 - alike))
    assert abs(lost - sent * loss) <= spread, f"{lost} of {sent}"
    assert abs(lost / bursts - burst) <= SIGMAS * burst / sqrt(bursts), f"bursts of {lost / bursts:.1f}"
    assert is_in_order(observed)


@pytest.mark.parametrize("offloads", [False, True], ids=["offloads off", "offloads on"])
def test_tcp_segments_are_lost_one_by_one_and_the_stream_is_complete(kind, offloads):
    observed = sandboxed(scenarios.tcp, kind, {"delay_us": 2000, "loss": 0.01}, 2.0, offloads)
    assert observed["intact"]
    sent = observed["segments_sent"]
    assert sent > 1000
    assert_binomial(sent - observed["segments_received"], sent, 0.01)


@pytest.mark.parametrize("megabits_per_s", [10, 100])
def test_tcp_gets_the_rate_less_its_headers(kind, megabits_per_s):
    rate_bits_per_s = min(megabits_per_s * 1_000_000, carried_bits_per_s(kind))
    parameters = {"delay_us": 5000, "rate_bits_per_s": rate_bits_per_s}
    asked = rate_bits_per_s * 1448 / 1514
    observed = sandboxed(scenarios.tcp, kind, parameters, 3.0, True)
    assert observed["intact"]
    # netem is tried in a kernel that is a process, and stalls whenever that does: at 10 Mbit/s it has
    # time enough to show whose headers count, at 100 it has none.
    within = 0.1 if (kind, megabits_per_s) == ("netem", 100) else 0.03
    assert asked * (1 - within) <= observed["goodput_bits_per_s"] <= asked * (1 + within)


def carried_bits_per_s(kind: str) -> int:
    """Return a rate that this machine currently carries easily over such a link, segment by segment."""
    plain = sandboxed(scenarios.tcp, kind, {"delay_us": 5000}, 1.0, False)
    return round(plain["goodput_bits_per_s"] / 4)


def test_a_cut_drops_packets_in_flight_and_follows_its_applied_times(kind):
    delay_ms = 40
    observed = sandboxed(scenarios.cut, kind, delay_ms)
    (cut_ns, healed_ns), sent_ns = observed["applied_ns"], observed["sent_ns"]
    (asked_ns, _) = observed[
        "requested_ns"
    ]  # where commands change a link, it is cut a while before they end
    tolerance_ns, delay_ns = TOLERANCE_MS * MS, delay_ms * MS
    through = {arrival.number for arrival in arrivals(observed)}
    before = [n for n, at in enumerate(sent_ns) if at + delay_ns < asked_ns - tolerance_ns]
    swallowed = [
        n for n, at in enumerate(sent_ns) if cut_ns + tolerance_ns - delay_ns < at < healed_ns - tolerance_ns
    ]
    after = [n for n, at in enumerate(sent_ns) if at > healed_ns + tolerance_ns]
    assert before
    assert swallowed
    assert after
    assert through >= set(before)
    assert through >= set(after)
    assert not through & set(swallowed)
    assert not [a for a in arrivals(observed) if cut_ns + tolerance_ns < a.arrived_ns < healed_ns]
    assert observed["counters"]["dropped_blackhole"] == len(sent_ns) - len(through)
    for requested_ns, applied_ns in zip(observed["requested_ns"], observed["applied_ns"], strict=True):
        assert applied_ns > requested_ns


def test_a_cut_may_be_one_way(kind):
    assert sandboxed(scenarios.one_way_cut, kind) == {"forward": 0, "backward": 20}


@pytest.mark.parametrize("own", [False, True], ids=["a changed MTU", "icmp dropped"])
def test_packets_larger_than_the_mtu_of_a_black_hole_vanish(kind, own):
    observed = sandboxed(scenarios.black_hole, kind, 1300, [1000, 1272, 1273, 1400], own)
    assert list(observed["passed"].values()) == [20, 20, 0, 0]


def test_a_full_queue_drops_the_last_packets(kind):
    observed = sandboxed(scenarios.overflow, kind, 20, 60)
    got = [arrival.number for arrival in arrivals(observed)]
    burst_ns = observed["sent_ns"][-1] - observed["sent_ns"][0]
    left_meanwhile = burst_ns // SENDING_NS
    assert 20 <= len(got) <= 23 + left_meanwhile  # those that wait, the one being sent, and some that leave
    assert got[:20] == list(range(20))
    assert observed["counters"]["dropped_queue"] == 60 - len(got)


def test_the_delay_can_be_changed_while_packets_cross(kind):
    delays_ms = [5, 60, 15]
    observed = sandboxed(scenarios.changing_delay, kind, delays_ms)
    through = arrivals(observed)
    assert len(through) == len(observed["sent_ns"])
    spans = pairwise([*observed["applied_ns"], float("inf")])
    for asked_ms, before_ms, (begin_ns, end_ns) in zip(delays_ms, [0, *delays_ms], spans, strict=False):
        settled_ns = begin_ns + (max(0, before_ms - asked_ms) + TOLERANCE_MS) * MS
        measured = [arrival.delay_us for arrival in through if settled_ns < arrival.sent_ns < end_ns]
        assert len(measured) > 50
        assert min(measured) >= asked_ms * 1000
        assert median(measured) < asked_ms * 1000 + 5000 + observed["timer_late_us"]


def test_a_link_follows_its_trace_and_packets_wait_during_a_pause(kind):
    observed = sandboxed(scenarios.traced, kind, RATES, DELAYS_US)
    through, zero_ns = arrivals(observed), observed["zero_ns"]
    assert observed["failure"] is None
    assert len(through) == len(observed["sent_ns"])
    assert is_in_order(observed)
    assert min(arrival.delay_us for arrival in through) >= min(DELAYS_US)
    late_ns = int(observed["steps_late_us"] * 1000)  # until then what comes in a pause still leaves
    most_held = 0
    for pause in PAUSES_NS:
        begin_ns, end_ns = (zero_ns + at_ns for at_ns in pause)
        within = [arrival for arrival in through if begin_ns < arrival.sent_ns < end_ns - TOLERANCE_MS * MS]
        leaving = [arrival for arrival in within if arrival.arrived_ns < end_ns - TOLERANCE_MS * MS]
        assert leaving == within[: len(leaving)]
        assert all(arrival.sent_ns <= begin_ns + late_ns + TOLERANCE_MS * MS for arrival in leaving)
        most_held = max(most_held, len(within) - len(leaving))
    assert most_held > 20, f"the trace's steps came as late as {late_ns / MS:.0f} ms"
    if kind == "relay":
        late_us = [(arrival.arrived_ns - due_ns) / 1000 for arrival, due_ns in traced(through, observed)]
        assert min(late_us) >= -1
        assert median(late_us) <= 1000 + observed["timer_late_us"]


def traced(through: list[Arrival], observed: dict[str, Any]) -> Iterator[tuple[Arrival, int]]:
    """Return the earliest arrival of each datagram; one that is sent just before a step may belong to that
    step.
    """
    curve = RateCurve(observed["zero_ns"], 1_000_000, scenarios.trace_steps(RATES))
    delays = scenarios.trace_steps(DELAYS_US)
    sent_ns = latest_ns = 0
    for arrival in through:
        sent_ns = curve.sent_ns(max(sent_ns, arrival.sent_ns), scenarios.TRACED_BYTES + 8 + 20 + 14)
        since_us = (arrival.sent_ns - observed["zero_ns"]) // 1000
        enters_us = (since_us, since_us + TOLERANCE_MS * 1000)
        held_ns = min(delays.values[delays.number_at(at_us)] for at_us in enters_us) * 1000
        latest_ns = max(latest_ns, sent_ns + held_ns)
        yield arrival, latest_ns
