"""Estimates of real clocks: two kernels with different clocks, and their captures of the same packets.

The truth comes from the processor's counter, which both share. A guest's note says that its clock showed a
time at some count between two; so the truth is known to some tens of microseconds, and an estimate is right
if its error bar overlaps this interval.
"""

import json
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import numpy as np
import pytest

from analysis.capture.clocks.estimate import PACKETS, Estimate, estimate
from analysis.capture.clocks.rate_segments import RATE_MAX
from analysis.capture.clocks.wire import LinkEnd, MatchEnds
from tests.testbed.uml.clock_guest import ADDRESSES, PAUSE_S, Settings, order
from tests.testbed.uml.pair import boot_pair
from tests.testbed.uml.uml_machine import KERNEL, is_installed

pytestmark = [pytest.mark.uml, pytest.mark.network, pytest.mark.timeout(450)]

S, MS, US = 10**9, 10**6, 10**3
APART = Settings(ahead_s=1234.5, rate_ppm=50.0, step_ms=3.0)
BOOTED_S_MAX = 400.0
Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Compared:
    """The estimate of guest b's clock from packets, and the truth, at the times of its notes."""

    noted_ns: Numbers
    estimate: Estimate
    low: Numbers
    high: Numbers
    true_low: Numbers
    true_high: Numbers


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Boot both guests once, with b's clock set ahead, made faster, and set again half-way."""
    if not is_installed():
        pytest.skip(f"{KERNEL} is not installed (Debian and Ubuntu: package user-mode-linux)")
    folder = tmp_path_factory.mktemp("clocks")
    settings = {"a": Settings(), "b": APART}
    for booted in boot_pair(
        [order(name, folder, settings[name]) for name in ADDRESSES], timeout_s=BOOTED_S_MAX
    ):
        assert booted.returncode == 0, booted.console
    ends = [LinkEnd(name, folder / f"{name}.pcap", (_only(address),)) for name, address in ADDRESSES.items()]
    found = MatchEnds("a-b", ends[0], ends[1], 1500, (0, 0))()
    one = estimate(["a", "b"], [found], {})["b"]
    notes = {name: np.array(json.loads((folder / f"{name}.json").read_text()), np.int64) for name in "ab"}
    low, high = one.clock.bounds(notes["b"][:, 1])
    return Compared(notes["b"][:, 1], one, low, high, *_truth(notes["a"], notes["b"]))


def _only(address: str) -> tuple[int, int]:
    return int(ip_address(address)), int(ip_address(address))


def _truth(near: Any, far: Any) -> tuple[Numbers, Numbers]:
    """Return bounds of the far clock's true offset at each of the far guest's notes.

    Counts become times by the near clock's own rate; from the nearest note on it may deviate by RATE_MAX.
    """
    per_count = (near[-1, 1] - near[0, 1]) / (near[-1, 0] - near[0, 0])
    place = np.clip(np.searchsorted(near[:, 0], far[:, 0]), 1, len(near) - 1)
    place -= (far[:, 0] - near[place - 1, 0]) < (near[place, 0] - far[:, 0])
    nearest = near[place]
    since_least = (far[:, 0] - nearest[:, 2]) * per_count
    since_most = (far[:, 2] - nearest[:, 0]) * per_count
    astray = np.maximum(np.abs(since_least), np.abs(since_most)) * RATE_MAX
    ahead = far[:, 1] - nearest[:, 1]
    return ahead - since_most - astray, ahead - since_least + astray


def test_the_true_offset_is_always_within_the_error_bar(compared: Compared) -> None:
    assert compared.estimate.source == PACKETS
    right = (compared.low <= compared.true_high) & (compared.true_low <= compared.high)
    assert right.all()


def test_the_error_bar_is_tens_of_microseconds_or_half_a_round_trip(compared: Compared) -> None:
    """Allow a wide error bar on a busy machine: the estimate is as exact as the packets allow."""
    round_trip_ns = np.median(np.diff(compared.noted_ns)) - PAUSE_S * S
    assert np.median(compared.high - compared.low) / 2 < max(200 * US, round_trip_ns / 2)


def test_the_set_clock_offset_is_estimated(compared: Compared) -> None:
    """Set it ahead before the first packet and again half-way, and faster by 50 ppm throughout.

    The offset at either end is known as exactly as the error bar there, which is wide on a busy machine.
    """
    middle = (compared.low + compared.high) / 2
    bar = (compared.high - compared.low) / 2
    assert middle[0] == pytest.approx(APART.ahead_s * S, abs=20 * S)  # kernels boot with what they have
    by_rate = (compared.noted_ns[-1] - compared.noted_ns[0]) * APART.rate_ppm * 1e-6
    exact = max(1 * MS, bar[0] + bar[-1])
    assert middle[-1] - middle[0] == pytest.approx(APART.step_ms * MS + by_rate, abs=exact)
    assert np.median(bar) < abs(APART.step_ms) * MS  # by which the step is told from noise
    assert len(compared.estimate.stretches) > 1
