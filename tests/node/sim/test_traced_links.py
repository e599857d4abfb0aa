"""Simulated links whose rate and delay vary over time."""

from node.sim.wires import LinkLine, SimulatedLinkDirection
from testbed.backends.simulated_network import line_of
from topologies.link_parameters import LinkParameters
from topologies.link_trace import STEP_US, LinkTrace, TraceSteps

ZERO_US = 50_000
PARAMETERS = LinkParameters(delay_us=5_000, rate_bits_per_s=8_000_000, rate_traced=True, delay_traced=True)


def steps(*values: int) -> TraceSteps:
    return TraceSteps("link.trace", "", len(values) * STEP_US, values)


TRACE = LinkTrace(steps(8_000_000, 0, 0, 4_000_000), steps(20_000, 40_000))


def link(line: LinkLine) -> SimulatedLinkDirection:
    return SimulatedLinkDirection(("a", "b"), line, lambda: 0.5)


def test_packets_in_a_pause_are_sent_after_it() -> None:
    there = link(line_of(PARAMETERS, TRACE, ZERO_US))
    assert round(there.take(ZERO_US + 10_000, 1_000)) == ZERO_US + 11_000
    assert round(there.take(ZERO_US + 150_000, 1_000)) == ZERO_US + 302_000
    there.free_us = ZERO_US + 340_000.0
    assert round(there.take(ZERO_US + 150_000, 1_000)) == ZERO_US + 342_000


def test_the_delay_is_that_of_its_step_and_before_time_0_the_links_own() -> None:
    there = link(line_of(PARAMETERS, TRACE, ZERO_US))
    at_us = (ZERO_US - 1, ZERO_US + 50_000, ZERO_US + 150_000, ZERO_US + 250_000)
    assert [there.delay_at_us(at) for at in at_us] == [5_000, 20_000, 40_000, 20_000]


def test_before_the_trace_begins_and_while_a_fault_sets_them_they_are_constant() -> None:
    for line in (
        line_of(PARAMETERS, TRACE, None),
        line_of(PARAMETERS.with_values({"rate_bits_per_s": 8_000_000, "delay_us": 5_000}), TRACE, ZERO_US),
    ):
        there = link(line)
        there.free_us = ZERO_US + 150_000.0
        assert there.take(ZERO_US + 150_000, 1_000) == ZERO_US + 151_000
        assert there.delay_at_us(ZERO_US + 150_000) == 5_000
