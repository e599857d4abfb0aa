"""Chains as a process knows them: which configurations it stores and refuses."""

import pytest

from node.protocols.sprinkler.chain.configurations import Chains, chain_of, configuration_of
from node.protocols.sprinkler.messages import Configuration, Replica, Standing
from node.protocols.sprinkler.parameters import SprinklerParameters
from tests.node.cluster import specs

MEMBER, JOINING = Standing.MEMBER, Standing.JOINING
NAMES = ["r0/proxy-0", "r0/proxy-1", "r0/proxy-2"]
TOLD = Configuration(3, 1, (Replica(1, MEMBER, 7), Replica(2, MEMBER, 8), Replica(0, JOINING, 9)))


def chains(**given):
    spec = specs(**{"regions": 2, "proxies": 3, "clients": 2, **given})[0]
    return Chains(spec, SprinklerParameters())


def test_only_newer_configurations_are_stored():
    known = chains(configuration=True)
    known.learn("r0", TOLD)
    assert not known.learn("r0", TOLD)
    assert not known.learn("r0", Configuration(2, 1, TOLD.replicas))


@pytest.mark.parametrize("region", ["r0", "elsewhere"])
def test_a_configuration_of_unknown_replicas_is_refused(region):
    known = chains(configuration=True)
    assert not known.learn(region, Configuration(9, 1, (Replica(3, MEMBER, 1),)))


def test_sent_and_known_configurations_are_equal():
    assert configuration_of(chain_of(TOLD, NAMES), NAMES) == TOLD
