"""A cut stays silent for as long as it lasts."""

import pytest

from tests.testbed.sandboxed import finish

pytestmark = pytest.mark.network


def test_a_cut_of_over_a_minute_is_silent_and_heals(started_long_cut):
    heard = finish(started_long_cut)
    assert heard["errors"] == []
    assert heard["icmp_heard"] == 0
    assert heard["neighbours"] == ["PERMANENT"]
    assert heard["healed"] == "ECONNREFUSED"  # the far host answers: no listener
