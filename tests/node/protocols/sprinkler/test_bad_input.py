"""Whatever messages come, from whomever, in what order ever: machines answer, refuse or ignore them."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from node.core import machine as m
from tests.node.protocols.sprinkler.any_messages import steps
from tests.node.protocols.sprinkler.chatter import Chatter
from tests.node.protocols.sprinkler.one_machine import Around

UNDER_TEST = [
    ("configured", "r0/proxy-0"),
    ("configured", "r0/proxy-1"),
    ("configured", "r0/client-0"),
    ("configured", "r0/driver-0"),
    ("configured", "r0/configuration-0"),
    ("static", "r0/proxy-0"),
    ("static", "r0/proxy-1"),
    ("static", "r0/client-0"),
    ("alone", "r0/proxy-0"),
]


@pytest.mark.parametrize(("layout", "name"), UNDER_TEST)
@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(script=steps)
def test_a_machine_survives_anything_that_decoders_let_through(layout, name, script):
    around = Around(layout, name)
    for what, first, second in script:
        around.do(what, first, second)
    around.give(m.Finish())


@pytest.mark.parametrize(("layout", "name"), UNDER_TEST)
@pytest.mark.parametrize("seed", range(4))
def test_a_machine_survives_long_talks_with_peers_that_are_nearly_right(layout, name, seed):
    for talk in range(10):
        around = Around(layout, name)
        chatter = Chatter(around, Random(f"{seed} {talk}"))
        for _ in range(300):
            chatter.step()
        around.give(m.Finish())
