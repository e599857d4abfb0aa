"""Chains as a process knows them: heads, tails, neighbours along the chain, and dialled processes."""

import pytest

from node.protocols.sprinkler.chain.configurations import Chains, ReplicaChain, chain_of, configuration_of
from node.protocols.sprinkler.messages import Configuration, Replica, Standing
from node.protocols.sprinkler.parameters import SprinklerParameters
from tests.node.cluster import specs

MEMBER, JOINING = Standing.MEMBER, Standing.JOINING
NAMES = ["r0/proxy-0", "r0/proxy-1", "r0/proxy-2"]
TOLD = Configuration(3, 1, (Replica(1, MEMBER, 7), Replica(2, MEMBER, 8), Replica(0, JOINING, 9)))


def chains(**given):
    spec = specs(**{"regions": 2, "proxies": 3, "clients": 2, **given})[0]
    return Chains(spec, SprinklerParameters())


def dialled(known, name, **given):
    return [target.peer for target in known.targets_for(name, **given)]


def test_without_a_service_the_only_proxy_is_the_chain():
    known = chains(proxies=1)
    assert known.chain("r0").members == ("r0/proxy-0",)
    assert (known.head("r1"), known.tail("r1")) == ("r1/proxy-0", "r1/proxy-0")


def test_with_a_service_nothing_is_known_before_its_first_message():
    known = chains(configuration=True)
    assert known.head("r0") is None
    assert dialled(known, "r0/driver-0") == ["r0/configuration-0"]
    assert known.learn("r0", TOLD)
    assert (known.head("r0"), known.tail("r0")) == ("r0/proxy-1", "r0/proxy-2")


def test_only_newer_configurations_are_stored():
    known = chains(configuration=True)
    known.learn("r0", TOLD)
    assert not known.learn("r0", TOLD)
    assert not known.learn("r0", Configuration(2, 1, TOLD.replicas))


@pytest.mark.parametrize("region", ["r0", "elsewhere"])
def test_a_configuration_of_unknown_replicas_is_refused(region):
    known = chains(configuration=True)
    assert not known.learn(region, Configuration(9, 1, (Replica(3, MEMBER, 1),)))


def test_neighbours_along_the_chain_include_the_joining_replica():
    chain = chain_of(TOLD, NAMES)
    assert [chain.predecessor(name) for name in NAMES] == ["r0/proxy-2", None, "r0/proxy-1"]
    assert [chain.successor(name) for name in NAMES] == [None, "r0/proxy-2", "r0/proxy-0"]
    assert chain.predecessor("r9/proxy-0") is chain.successor("r9/proxy-0") is None


def test_a_restarted_replica_does_not_belong_to_the_chain():
    chain = chain_of(TOLD, NAMES)
    assert chain.has(NAMES[1], 7)
    assert not chain.has(NAMES[1], 8)
    assert ReplicaChain(0, 0, (NAMES[0],), None, (0,)).has(NAMES[0], 12345)


def test_sent_and_known_configurations_are_equal():
    assert configuration_of(chain_of(TOLD, NAMES), NAMES) == TOLD


def test_the_head_or_tail_in_the_region_that_sorts_first_dials():
    known = chains()
    assert dialled(known, "r0/proxy-0") == ["r1/proxy-2"]
    assert dialled(known, "r0/proxy-1") == ["r0/proxy-0"]
    assert dialled(known, "r0/proxy-2") == ["r0/proxy-1", "r1/proxy-0"]
    assert dialled(known, "r1/proxy-0") == []
    assert dialled(known, "r1/proxy-2") == ["r1/proxy-1"]


def test_clients_dial_the_tail_and_publishers_the_head():
    known = chains(configuration=True)
    known.learn("r0", TOLD)
    assert dialled(known, "r0/client-1") == ["r0/configuration-0", "r0/proxy-2"]
    assert dialled(known, "r0/client-1", publishes=["r0"])[-1] == "r0/proxy-1"
    assert dialled(known, "r0/driver-0") == ["r0/configuration-0", "r0/proxy-1"]


def test_a_remote_publisher_dials_the_owners_service_and_head():
    known = chains(configuration=True, publishers=(("r0", "r1/driver-0"), ()))
    known.learn("r0", TOLD)
    assert dialled(known, "r1/driver-0") == ["r0/configuration-0", "r0/proxy-1"]
    assert dialled(known, "r1/client-0", publishes=["r0"])[-2:] == ["r0/configuration-0", "r0/proxy-1"]
