"""Golden scenarios of nodes that find each other by their ids: a script says what they do, and what followed.

The text's form is `tests.golden.script`'s. A node's name is its id: its first digits, of `b` bits each.

    member 0111 in 0,10
    show JOIN ADOPTED REJOIN became_root

Commands, after the second at which each is done:

    start 1100 0111           nodes start, one second apart; each knows the first one
    join 0111 1100            a node becomes a member of the topic with this key
    leave 0111 1100
    publish 0111 1100 3       three messages, one by one
    route 65a1fc d46a1c       a message that only shows its way: HELLO
    kill 1101
    end

`delivered` shows what members get.
"""

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Annotated, Any, ClassVar

from node.core import machine as m
from node.core.message_layout import Field
from node.protocols.pastry.messages import Route
from node.protocols.reachability.nodes import ID_BITS
from node.protocols.scribe.peer import ScribePeer, TopicMessage
from tests.golden.flat_scenario import FlatScenario
from tests.golden.script import Script

BETWEEN_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Hello:
    """The message that `route` sends."""

    reads: ClassVar = ("{key}",)

    key: Annotated[int, Field("K", "", "where to")]


class Scenario(FlatScenario):
    """Plays a script."""

    routed = Route

    def __init__(self, script: Script) -> None:
        self._bits = script.parameters.get("b", 4)
        self._peers: dict[str, ScribePeer] = {}
        super().__init__(script)

    def id_of(self, name: str) -> int:
        """Return the id with these first digits."""
        return int(name, 1 << self._bits) << (ID_BITS - self._bits * len(name))

    # --- Commands

    def _start(self, *names: str) -> None:
        for name in names:
            number, first = self.address(name), next(iter(self.script.names))
            contacts = [] if name == first else [f"0.0.0.{self.address(first)}"]
            peer = ScribePeer(
                name, f"0.0.0.{number}", contacts,
                rng=Random(number), node_id=self.id_of(name), **self.script.parameters,
            )  # fmt: skip
            peer.wake = partial(self.network.give, number, m.Nudge())
            peer.handlers.deliver = partial(self._delivered, name)
            self._peers[name] = peer
            self.network.start(number, peer)
            self.network.run(self.network.clock.now_us + BETWEEN_US)

    def _join(self, name: str, key: str) -> None:
        self._peers[name].join("", self.id_of(key), partial(self._got, name))

    def _leave(self, name: str, key: str) -> None:
        self._peers[name].leave("", self.id_of(key))

    def _publish(self, name: str, key: str, count: str) -> None:
        for number in range(int(count)):
            self._peers[name].multicast("", self.id_of(key), b"%d" % (number + 1))

    def _route(self, name: str, key: str) -> None:
        self._peers[name].route(Hello(self.id_of(key)), self.id_of(key))

    # --- What followed

    def _got(self, name: str, message: TopicMessage) -> None:
        self.say(f"{name} has [{message.seq}]", "delivered")

    def _delivered(self, name: str, message: Any, key: int) -> None:
        self.say(f"{name}: deliver {self.words_of(message)[0]}")
