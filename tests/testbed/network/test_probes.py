"""Echoes on a machine that stalls now and then."""

import itertools
import time
from types import SimpleNamespace

import pytest

from testbed.network import probes
from tests.testbed.sandboxed import sandboxed

pytestmark = pytest.mark.network

STANDSTILL_S = 30.0


def _measure_between_standstills() -> list[list[float]]:
    """Measure echoes from lo while every reading of the clock jumps ahead."""
    leaping = itertools.count(0.0, STANDSTILL_S)
    probes.time = SimpleNamespace(monotonic=lambda: next(leaping), time_ns=time.time_ns)
    return probes.measure([probes.ProbePair("r0", "r1", "host", "127.0.0.1")], {"host": "/proc/self/ns/net"})


def test_an_answered_echo_is_not_lost_if_the_machine_stalls():
    [round_trips_us] = sandboxed(_measure_between_standstills)
    assert len(round_trips_us) == probes.ROUNDS
