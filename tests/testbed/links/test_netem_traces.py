"""The netem commands for each step of a trace."""

from testbed.links.netem_commands import delay_options, in_step, limit_options, next_step_us
from topologies.link_parameters import LinkParameters
from topologies.link_trace import STEP_US, LinkTrace, TraceSteps


def steps(*values: int, more_us: int = 0) -> TraceSteps:
    return TraceSteps("link.trace", "", len(values) * STEP_US + more_us, values)


PARAMETERS = LinkParameters(
    delay_us=5_000, rate_bits_per_s=3_000_000, queue_packets=50, rate_traced=True, delay_traced=True
)
TRACE = LinkTrace(steps(0, 4_000_000, 1_000_000, 0, more_us=20_000), steps(20_000, 40_000))


def told(since_us: int, parameters: LinkParameters = PARAMETERS) -> tuple[int, int | None, int]:
    now, hold_us = in_step(parameters, TRACE, since_us)
    return now.delay_us, now.rate_bits_per_s, hold_us


def test_each_step_has_its_rate_and_delay_and_the_links_own_before_time_0():
    assert told(-1) == (5_000, 3_000_000, 0)
    assert told(100_000) == (40_000, 4_000_000, 0)
    assert told(250_000) == (20_000, 1_000_000, 0)
    assert told(520_000) == (40_000, 4_000_000, 0)  # 420 ms is a turn of the rate, 200 ms one of the delay


def test_in_a_pause_packets_are_held_to_its_end_also_into_the_next_repetition():
    assert told(0) == (20_000, 4_000_000, 100_000)
    assert told(300_000) == (40_000, 4_000_000, 120_000 + 100_000)
    now, hold_us = in_step(PARAMETERS, TRACE, 410_000)
    assert limit_options(now, hold_us=hold_us).startswith("limit 51 delay 110000us 0us rate 4000000bit")


def test_a_faults_values_replace_the_trace():
    slow = PARAMETERS.with_values({"rate_bits_per_s": 500_000})
    assert told(0, slow) == (20_000, 500_000, 0)
    far = PARAMETERS.with_values({"delay_us": 90_000})
    assert told(100_000, far) == (90_000, 4_000_000, 0)
    assert "delay 90000us" in delay_options(in_step(far, TRACE, 100_000)[0])


def test_the_next_step_is_that_of_the_rate_or_of_the_delay():
    at_us, ends = -7, []
    while at_us < 640_000:
        at_us = next_step_us(TRACE, at_us)
        ends.append(at_us // 1000)
    assert ends == [0, 100, 200, 300, 400, 420, 500, 520, 600, 620, 700]
