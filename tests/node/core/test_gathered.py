"""Effects for one address are sent together; those after a Forget stay behind it."""

from node.core import machine as m
from node.core.peers.peer_pool import Forget, SendTo, gathered

LINE = m.Log("line")


def test_messages_to_one_address_go_in_one_effect_in_order():
    effects = [SendTo(1, ("a",)), SendTo(2, ("b",)), LINE, SendTo(1, ("c", "d")), SendTo(2, ("e",))]
    assert gathered(effects) == [SendTo(1, ("a", "c", "d")), SendTo(2, ("b", "e")), LINE]


def test_nothing_is_sent_before_a_connection_is_forgotten_that_was_to_be_sent_after_it():
    before = [SendTo(1, ("a",)), SendTo(2, ("b",))]
    after = [SendTo(1, ("c",)), SendTo(1, ("d",)), SendTo(2, ("e",))]
    effects = [*before, Forget(1), *after]
    assert gathered(effects) == [SendTo(1, ("a",)), SendTo(2, ("b", "e")), Forget(1), SendTo(1, ("c", "d"))]
