"""A wrong clock: the time that it shows, and the effect of overlapping faults."""

from hypothesis import given
from hypothesis import strategies as st

from experiments.planned.changes import ProcessAction, ProcessChange
from node.core.wrong_clock import WrongClock
from testbed.faults.clocks import Clocks

TIMES = st.integers(0, 10**14)
CLOCKS = st.builds(WrongClock, st.integers(-(10**12), 10**12), st.floats(-500_000, 500_000), TIMES)


@given(CLOCKS, TIMES)
def test_the_right_time_is_the_first_at_which_the_clock_shows_at_least_that(
    clock: WrongClock, shown_us: int
) -> None:
    right_us = clock.right_us(shown_us)
    assert clock.shows(right_us) >= shown_us > clock.shows(right_us - 1)


def test_a_drift_counts_from_its_beginning() -> None:
    clock = WrongClock(offset_us=3_000_000, drift_ppm=200, since_us=5_000_000)
    assert clock.shows(5_000_000) == 8_000_000
    assert clock.shows(15_000_000) == 18_002_000
    assert clock.moved(7).shows(15_000_007) == 18_002_007


def change(action: ProcessAction, rule: str, offset_us: int = 0, drift_ppm: float = 0.0) -> ProcessChange:
    return ProcessChange(0, rule, "r0/server-0", action, rule=rule, offset_us=offset_us, drift_ppm=drift_ppm)


def test_overlapping_faults_add_up_and_each_ends_by_itself() -> None:
    clocks = Clocks()
    clocks.change(change(ProcessAction.CLOCK, "step", 3_000), 1_000_000)
    both = clocks.change(change(ProcessAction.CLOCK, "drift", drift_ppm=100), 2_000_000)
    assert both.ahead_us(12_000_000) == 4_000
    left = clocks.change(change(ProcessAction.UNCLOCK, "step"), 12_000_000)
    assert left.ahead_us(12_000_000) == 1_000
    assert clocks.current("r0/server-0", 22_000_000).ahead_us(22_000_000) == 2_000
    assert clocks.change(change(ProcessAction.UNCLOCK, "drift"), 23_000_000).ahead_us(10**9) == 0
    assert clocks.current("r0/server-1", 0) == WrongClock()
