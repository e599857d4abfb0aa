"""Any messages from any peer in any order: machines answer, refuse or ignore them."""

from collections import deque
from random import Random

import pytest

from node.core import machine as m
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.chain.head import HELD_LIMIT_BYTES
from tests.node.protocols.sprinkler.chatter import Chatter
from tests.node.protocols.sprinkler.one_machine import Around

UNDER_TEST = [
    ("configured", "r0/proxy-0"),
    ("configured", "r0/proxy-1"),
    ("configured", "r0/client-0"),
    ("configured", "r0/driver-0"),
    ("configured", "r0/configuration-0"),
    ("alone", "r0/proxy-0"),
    ("alone", "r0/client-0"),
]


@pytest.mark.parametrize(("layout", "name"), UNDER_TEST)
@pytest.mark.parametrize("seed", range(2))
def test_a_machine_survives_many_nearly_valid_messages(layout, name, seed):
    for talk in range(10):
        around = Around(layout, name)
        chatter = Chatter(around, Random(f"{seed} {talk}"))
        for _ in range(300):
            chatter.step()
        around.give(m.Finish())


def test_a_recovering_proxy_holds_a_bounded_number_of_publications():
    around = Around("alone", "r0/proxy-0")
    around.do("accept", "r0/driver-0", 1)
    for request in range(1, 200):
        around.receive(1, [wire.Publish(0, 0, 0, request, 1, 1_000_000, 0, bytes(1_000_000))])
    head = around.machine.head
    assert head.is_restoring
    assert sum(len(message.payload) for _, message in head._held) <= HELD_LIMIT_BYTES
    refused = [message for _, message in around.sent if isinstance(message, wire.Refused)]
    assert len(head._held) + len(refused) == 199
    for _ in range(3):
        around.pass_time(1_000_000)
        around.receive(1, [wire.Advertisement(())])
    around.do("disk", True, 0)
    acknowledged = [message for _, message in around.sent if isinstance(message, wire.Published)]
    assert [message.first_request for message in acknowledged] == list(range(1, len(acknowledged) + 1))
    assert len(acknowledged) == 199 - len(refused)


def test_state_of_unknown_peers_ends_with_their_connections():
    """Let a thousand peers send many messages and leave; no state of them may remain."""
    around = Around("alone", "r0/proxy-0")
    for serial in range(1000):
        around.open_with(f"r0/stranger-{serial}", serial)
        said = [
            wire.Advertisement((wire.Counter(serial, 5),)),
            wire.Request(0, 1, 100),
            wire.Subscribe(1, 3),
        ]
        around.receive(around.number, said)
        around.do("lost", 0, 0)
        around.pass_time(20_000)
    assert sizes_within(around.machine) < 200


def sizes_within(machine):
    """Return the largest collection reachable from a machine, apart from its specification."""
    seen, found, left = set(), [], [vars(machine)]
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            found.append(len(value))
            left += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | deque):
            found.append(len(value))
            left += value
        elif type(value).__module__.startswith("node."):
            names = getattr(type(value), "__slots__", None) or vars(value)
            left += [getattr(value, name) for name in names if hasattr(value, name)]
    return max(found)
