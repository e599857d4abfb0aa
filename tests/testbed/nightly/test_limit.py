"""A run that takes too long is interrupted as by Ctrl-C."""

import contextlib
import signal

import pytest

from testbed.nightly.limit import limited


def wait_for_ever() -> None:
    while True:
        pass


def test_what_takes_too_long_is_interrupted_and_it_is_known_why():
    with pytest.raises(KeyboardInterrupt), limited(0.01) as limit:
        wait_for_ever()
    assert limit.passed
    assert not limit.by_user


def test_that_the_user_asked_for_an_end_is_known_even_where_python_drops_the_interrupt():
    with limited(1000) as limit, contextlib.suppress(KeyboardInterrupt):  # as a callback of a weak reference
        signal.raise_signal(signal.SIGINT)
    assert limit.by_user
    assert not limit.passed


def test_what_is_over_in_time_is_left_alone():
    handler = signal.getsignal(signal.SIGALRM)
    with limited(1000) as limit:
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
    assert not limit.passed
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is handler


def test_a_budget_that_is_over_already_leaves_no_time():
    with pytest.raises(KeyboardInterrupt), limited(-5):
        wait_for_ever()
