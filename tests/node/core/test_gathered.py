"""Effects for one address are merged, but not across a Forget."""

from node.core import machine as m
from node.core.peers.peer_pool import Forget, SendTo, gathered

LINE = m.Log("line")


def test_messages_to_one_address_become_one_effect_in_order():
    effects = [SendTo(1, ("a",)), SendTo(2, ("b",)), LINE, SendTo(1, ("c", "d")), SendTo(2, ("e",))]
    assert gathered(effects) == [SendTo(1, ("a", "c", "d")), SendTo(2, ("b", "e")), LINE]


def test_messages_after_a_forget_stay_after_it():
    before = [SendTo(1, ("a",)), SendTo(2, ("b",))]
    after = [SendTo(1, ("c",)), SendTo(1, ("d",)), SendTo(2, ("e",))]
    effects = [*before, Forget(1), *after]
    assert gathered(effects) == [SendTo(1, ("a",)), SendTo(2, ("b", "e")), Forget(1), SendTo(1, ("c", "d"))]
