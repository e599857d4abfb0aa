"""The relay's process: effects on a run if it cannot start, fails, or ends."""

import pytest

from tests.testbed.links.relay import relay_alone
from tests.testbed.sandboxed import sandboxed
from topologies.link_parameters import LinkParameters, queue_limit_packets

network = pytest.mark.network


@network
def test_a_killed_relay_is_reported():
    said = sandboxed(relay_alone.killed)
    assert said["before"] is None
    assert said["after"] == "the links' relay was killed by SIGKILL"
    assert "counters" in said["order"]
    assert "killed by SIGKILL" in said["order"]


@network
def test_a_missing_interface_is_named():
    said = sandboxed(relay_alone.missing_interface)
    assert said.startswith("MachineError: the links' relay did not start")
    assert "nowhere" in said


@network
def test_a_change_to_an_unknown_link_is_refused_and_the_relay_continues():
    assert "there is no link missing" in sandboxed(relay_alone.unknown_link)


@network
def test_a_cut_does_not_drop_frames_due_before_it_if_the_relay_is_late():
    assert sandboxed(relay_alone.late_cut) == {"arrived": 20, "swallowed": 0}


@network
def test_the_relay_survives_its_interfaces_going_down():
    assert sandboxed(relay_alone.emulator_down) == {"through": [20, 0, 20], "failure": None}


@network
@pytest.mark.parametrize(("datagrams", "frames"), [(1, 600), (2, 200), (40, 20)])
def test_the_rings_hold_a_gigabit_while_the_relay_is_suspended(datagrams, frames):
    said = sandboxed(relay_alone.away, datagrams, frames)
    assert said["dropped_kernel"] == 0
    assert said["passed"] == datagrams * frames
    assert 0.3 < said["ring_peak"] <= 1  # so full the rings were: it is told before they drop anything


@network
@pytest.mark.parametrize("megabits_per_s", [1, 10])
def test_the_rings_of_a_slow_link_hold_a_full_queue_and_250_ms_of_its_rate(megabits_per_s):
    rate_bits_per_s = megabits_per_s * 1_000_000
    link = LinkParameters(delay_us=1000, rate_bits_per_s=rate_bits_per_s)
    frames = (queue_limit_packets(link) or 0) + rate_bits_per_s // 8 // 4 // 1500
    said = sandboxed(relay_alone.away, 1, frames, rate_bits_per_s)
    assert said["dropped_kernel"] == 0
    assert said["passed"] + said["dropped_queue"] == frames


@network
def test_hundreds_of_links_are_carried():
    assert sandboxed(relay_alone.many_links, 300) == [300, None]
