"""A run that takes too long is interrupted as by Ctrl-C."""

import contextlib
import signal
import sys
import threading
import time
import weakref

import pytest

from testbed.interrupts import Limit, none_dropped


def wait_for_ever() -> None:
    while True:
        pass


@pytest.mark.parametrize("seconds", [0.01, 0.0, -5.0])
def test_work_beyond_its_limit_is_interrupted_with_the_reason(seconds):
    limit = Limit()
    with pytest.raises(KeyboardInterrupt):
        limit.within(seconds, wait_for_ever)
    assert limit == Limit(passed=True, by_user=False)


def test_the_users_interrupt_is_recorded_even_if_python_drops_it():
    def work() -> None:
        with contextlib.suppress(KeyboardInterrupt):  # as a callback of a weak reference
            signal.raise_signal(signal.SIGINT)

    limit = Limit()
    limit.within(1000, work)
    assert limit == Limit(passed=False, by_user=True)


class Collected:
    """A run that is interrupted during garbage collection."""


def interrupt_where_it_is_dropped() -> None:
    collected = Collected()
    _reference = weakref.ref(collected, lambda _: signal.raise_signal(signal.SIGINT))
    del collected
    time.sleep(10)


def test_an_interrupt_that_python_drops_is_repeated_silently(capfd):
    with none_dropped(), pytest.raises(KeyboardInterrupt):
        interrupt_where_it_is_dropped()
    assert capfd.readouterr() == ("", "")


def test_an_interrupt_during_the_repetition_is_repeated_again(capfd, monkeypatch):
    real = threading.Timer.start
    late = [True, False]

    def start(timer: threading.Timer) -> None:
        real(timer)
        if late.pop(0):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(threading.Timer, "start", start)
    with none_dropped(), pytest.raises(KeyboardInterrupt):
        interrupt_where_it_is_dropped()
    assert late == []
    assert capfd.readouterr() == ("", "")


HANDLED = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def restored():
    """Fail if a handler or timer remains."""
    handlers = [signal.getsignal(number) for number in HANDLED]
    yield
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert [signal.getsignal(number) for number in HANDLED] == handlers


def test_work_within_its_limit_is_not_interrupted(restored):
    def work() -> str:
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
        return "done"

    limit = Limit()
    assert limit.within(1000, work) == "done"
    assert limit == Limit(passed=False, by_user=False)


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_limit_that_expires_as_work_begins_or_ends_leaves_no_timer(restored, monkeypatch, at_the_end):
    real = signal.setitimer

    def setitimer(which: int, seconds: float, *more: float) -> None:
        if at_the_end is (seconds == 0):
            signal.raise_signal(signal.SIGALRM)
        real(which, seconds, *more)

    monkeypatch.setattr(signal, "setitimer", setitimer)
    limit = Limit()
    if at_the_end:
        assert limit.within(1000, lambda: "done") == "done"
    else:
        with pytest.raises(KeyboardInterrupt):
            limit.within(1000, wait_for_ever)
    assert limit == Limit(passed=not at_the_end, by_user=False)


def test_other_errors_that_python_drops_are_printed_as_usual(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with none_dropped():
        collected = Collected()
        _reference = weakref.ref(collected, lambda _: 1 / 0)
        del collected
    assert [one.exc_type for one in told] == [ZeroDivisionError]
