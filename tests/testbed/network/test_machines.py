"""One plan on three machines, joined by tunnels: delays, cuts, and a region on two of them."""

import pytest

from tests.testbed.network.assigned_networks import three_machines
from tests.testbed.network.plans import kinds_here
from tests.testbed.sandboxed import sandboxed

pytestmark = pytest.mark.network

ROUND_TRIP_US = 2 * (10_000 + 1_000 + 1_000)


@pytest.fixture(scope="module", params=kinds_here())
def seen(request):
    return sandboxed(three_machines, request.param)


def test_links_between_machines_delay_as_planned_each_direction_once(seen):
    assert len(seen["rtt_us"]) == 8
    # Were a direction shaped twice, it would be 1.8 and more.
    assert ROUND_TRIP_US <= min(seen["rtt_us"]) < 1.5 * ROUND_TRIP_US


def test_a_host_on_its_region_s_second_machine_is_reached_from_anywhere(seen):
    assert seen["across"] == "ECONNREFUSED"  # the far host answers: no listener
    assert seen["within"] == "ECONNREFUSED"


def test_a_cut_made_on_both_machines_cuts_that_link_alone_and_heals(seen):
    assert seen["cut_rtt_us"] == []
    assert seen["within_while_cut"] == "ECONNREFUSED"
    assert seen["healed"] == "ECONNREFUSED"
