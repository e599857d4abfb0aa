"""Golden scenarios of peers that subscribe to content: a script has their commands and the results.

The text's form is `tests.golden.space_scenario`'s. There is one attribute, from 0 to 1, so the space has two
dimensions: a subscription to l..h lies at l,h; an event with the value c affects 0..c x c..1. Commands
besides those of spaces:

    start b 0.75,0.25         a peer joins at a point, or, with `set join by-load`, at the first one
    subscribe b 1 0.2..0.3    to a range, as the peer's subscription 1
    unsubscribe b 1
    publish a 0.25            an event
    kept                      list each peer's number of subscriptions and copies, and its replicas

`delivered` shows what subscribers get.
"""

from functools import partial
from ipaddress import IPv4Address
from random import Random
from typing import Any

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.specification import Member, NodeSpec, PlannedSubscription
from node.protocols.meghdoot.node import MeghdootNode
from tests.golden.space_scenario import Scenario as SpaceScenario
from tests.golden.space_scenario import point_of_text, shown

ATTRIBUTE = {"name": "value", "kind": "real", "low": 0.0, "high": 1.0}


class Scenario(SpaceScenario):
    """Plays a script."""

    def _start(self, name: str, point: str = "") -> None:
        first = next(iter(self.script.regions))
        members = () if name == first else (self._member(first),)
        spec = NodeSpec(
            name, name, "", "peer", 0, 0, "meghdoot", members, self._member(name).address,
            self.script.parameters, {"attributes": [ATTRIBUTE]},
        )  # fmt: skip
        node = MeghdootNode(spec, Random(name))
        if point:
            node.can.start = partial(node.can.start, point=point_of_text(point))  # type: ignore[method-assign]
        self.shown_as[f"{node.can.own.id:032x}"[:6]] = name
        self.network.start(self.address(name), node)

    def _member(self, name: str) -> Member:
        return Member(name, name, "", "peer", 0, str(IPv4Address(self.address(name))))

    def _act_as_peer(self, name: str, do: Any) -> None:
        self.network.act(self.address(name), do)

    # --- Commands

    def _subscribe(self, name: str, number: str, wanted: str, *, on: bool = True) -> None:
        low, high = map(float, wanted.split(".."))
        asked = PlannedSubscription(0, int(number), on, ((low, high),))
        self._act_as_peer(name, lambda node: node.broker.subscriber.subscribe(asked))

    def _unsubscribe(self, name: str, number: str) -> None:
        self._subscribe(name, number, "0..1", on=False)

    def _publish(self, name: str, value: str) -> None:
        self._act_as_peer(name, lambda node: node.publish(self.address(name), [float(value)], 8))

    def _kept(self) -> None:
        for flat in self.network.nodes.values():
            node: MeghdootNode = flat.machine  # type: ignore[assignment]
            claims, keeping = node.can.claims, node.broker.keeping
            zones = " and ".join(map(shown, sorted(claims.own.versions)))
            if claims.original is not None:
                zones = f"replica of {self.names[claims.original]}"
            counts = f"{len(keeping.subscriptions)} subscriptions, {len(keeping.copies)} copies"
            self.say(f"{self.names[node.can.own.address]}: {zones or 'nothing'}; {counts}")

    # --- What followed

    def _told(self, address: int, time_us: int, effect: m.Effect) -> None:
        if isinstance(effect, m.Record) and effect.kind == RecordKind.DELIVERED:
            told = f"{self.names[effect.stream]}'s event {effect.first_seq}"
            self.say(f"{self.names[address]} has {told}", "delivered")
        super()._told(address, time_us, effect)
