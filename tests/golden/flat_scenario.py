"""Golden scenarios on a flat network: a node's region is its position, x,y in milliseconds.

The delay of a message is the distance. Messages are shown with their content: a routed message follows ROUTE.
Ids are shown as the nodes' names.
"""

import re
from math import hypot
from typing import Any

from node.core import machine as m
from node.protocols.reachability.messages import Relay
from node.sim.flat_network import FlatNetwork
from tests.golden.reading import in_words
from tests.golden.script import Script, ScriptPlayer

DIGITS = re.compile(r"\b[0-9a-f]{6}\b")


class FlatScenario(ScriptPlayer):
    """Plays a script. routed: the class of messages that carry another message along a route."""

    routed: type

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.names = dict(enumerate(script.regions, 1))
        self._where = [tuple(map(float, region.split(","))) for region in script.regions.values()]
        self.shown_as = {f"{self.id_of(name):032x}"[:6]: name for name in script.regions}
        self.network = FlatNetwork(self._delay_us, self._told)
        self.network.watch = self._watch

    def id_of(self, name: str) -> int:
        """Return the id of a node."""
        raise NotImplementedError

    def address(self, name: str) -> int:
        """Return the address of a node."""
        return next(number for number, other in self.names.items() if other == name)

    def say(self, text: str, kind: str = "") -> None:
        """Add a line if its kind is shown."""
        if not kind or kind in self.script.shown:
            named = DIGITS.sub(lambda found: self.shown_as.get(found[0], found[0]), text)
            self.lines.append(f"{self.network.clock.now_us / 1e6:.3f}  {named}")

    def words_of(self, message: Any) -> tuple[str, str]:
        """Return a message's name and phrases."""
        return in_words(message, lambda _: True)

    def _kill(self, *names: str) -> None:
        for name in names:
            self.network.kill(self.address(name))

    def _delay_us(self, a: int, b: int) -> int:
        (x, y), (u, v) = self._where[a - 1], self._where[b - 1]
        return round(1_000 * hypot(x - u, y - v))

    def _watch(self, source: int, target: int, messages: Any) -> None:
        for message in messages:
            way, inner = "", message
            while isinstance(inner, (self.routed, Relay)):
                way, inner = way + f"{type(inner).__name__.upper()} ", inner.message
            name, said = self.words_of(inner)
            self.say(f"{self.names[source]} -> {self.names[target]}  {way}{name} {said}".rstrip(), name)

    def _told(self, address: int, time_us: int, effect: m.Effect) -> None:
        if isinstance(effect, m.Log):
            peer = self.names.get(effect.fields.get("peer", 0), "")
            self.say(f"{self.names[address]}: {effect.event} {peer}".rstrip(), effect.event)
