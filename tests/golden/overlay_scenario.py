"""Golden scenarios of nodes that find each other by their ids: a script says what they do, and what followed.

The text's form is `tests.golden.script`'s. A node's name is its id: its first digits, of `b` bits each.
Its region says where it stands, as x,y in milliseconds: how long a message takes is the distance.

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

Messages are shown with their insides: what is routed stands behind ROUTE. `delivered` shows what members get.
When it is understood why a script changed: `python -m tests.golden.overlay_scenario FILE…` rewrites it.
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import hypot
from pathlib import Path
from random import Random
from typing import Annotated, Any, ClassVar

from node.core import machine as m
from node.core.message_layout import Field
from node.protocols.pastry.messages import Route
from node.protocols.reachability.messages import Relay
from node.protocols.reachability.nodes import ID_BITS
from node.protocols.scribe.peer import ScribePeer, TopicMessage
from node.sim.flat_network import FlatNetwork
from tests.golden.reading import in_words
from tests.golden.script import Command, Script, read, with_followed

BETWEEN_US = 1_000_000
KEY = re.compile(r"\b[0-9a-f]{6}\b")


@dataclass(frozen=True, slots=True)
class Hello:
    """What `route` sends."""

    reads: ClassVar = ("{key}",)

    key: Annotated[int, Field("K", "", "where to")]


def run(text: str) -> str:
    """Run the script and return it with its results."""
    script = read(text)
    return with_followed(text, Scenario(script).play())


class Scenario:
    """A script that is played."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._bits = script.parameters.get("b", 4)
        self._where = {}
        self._names: dict[int, str] = {}
        self._peers: dict[str, ScribePeer] = {}
        self._lines: list[str] = []
        for number, (name, region) in enumerate(script.regions.items(), 1):
            self._names[number] = name
            self._where[number] = tuple(map(float, region.split(",")))
        self._shown_as = {f"{self._id(name):032x}"[:6]: name for name in script.names}
        self._network = FlatNetwork(self._delay_us, self._told)
        self._network.watch = self._watch
        self._do: dict[str, Callable[..., None]] = {
            "start": self._start,
            "kill": lambda *names: [self._network.kill(self._address(each)) for each in names] and None,
            "join": lambda name, key: self._peer(name).join("", self._id(key), partial(self._got, name)),
            "leave": lambda name, key: self._peer(name).leave("", self._id(key)),
            "publish": self._publish,
            "route": lambda name, key: self._peer(name).route(Hello(self._id(key)), self._id(key)),
            "end": lambda: None,
        }

    def play(self) -> Iterator[tuple[Command, list[str]]]:
        """Each command with what followed it, until the next one."""
        commands = self._script.commands
        for command, following in zip(commands, [*commands[1:], commands[-1]], strict=True):
            self._network.run(command.at_us)
            self._do[command.verb](*command.words)
            self._network.run(following.at_us - 1)
            yield command, self._lines
            self._lines = []

    # --- Commands

    def _start(self, *names: str) -> None:
        for name in names:
            number, first = self._address(name), next(iter(self._script.names))
            contacts = [] if name == first else [f"0.0.0.{self._address(first)}"]
            peer = ScribePeer(
                name, f"0.0.0.{number}", contacts,
                rng=Random(number), node_id=self._id(name), **self._script.parameters,
            )  # fmt: skip
            peer.wake = partial(self._network.give, number, m.Nudge())
            peer.handlers.deliver = partial(self._delivered, name)
            self._peers[name] = peer
            self._network.start(number, peer)
            self._network.run(self._network.clock.now_us + BETWEEN_US)

    def _publish(self, name: str, key: str, count: str) -> None:
        for number in range(int(count)):
            self._peer(name).multicast("", self._id(key), b"%d" % (number + 1))

    def _peer(self, name: str) -> ScribePeer:
        return self._peers[name]

    def _address(self, name: str) -> int:
        return next(number for number, other in self._names.items() if other == name)

    def _id(self, digits: str) -> int:
        return int(digits, 1 << self._bits) << (ID_BITS - self._bits * len(digits))

    def _delay_us(self, a: int, b: int) -> int:
        (x, y), (u, v) = self._where[a], self._where[b]
        return round(1_000 * hypot(x - u, y - v))

    # --- What followed

    def _watch(self, source: int, target: int, messages: Any) -> None:
        for message in messages:
            way, inner = "", message
            while isinstance(inner, (Route, Relay)):
                way, inner = way + f"{type(inner).__name__.upper()} ", inner.message
            name, said = in_words(inner, lambda _: True)
            if name in self._script.shown:
                self._say(f"{self._names[source]} -> {self._names[target]}  {way}{name} {said}")

    def _told(self, address: int, time_us: int, effect: m.Effect) -> None:
        if isinstance(effect, m.Log) and effect.event in self._script.shown:
            self._say(f"{self._names[address]}: {effect.event}")

    def _got(self, name: str, message: TopicMessage) -> None:
        if "delivered" in self._script.shown:
            self._say(f"{name} has [{message.seq}]")

    def _delivered(self, name: str, message: Any, key: int) -> None:
        self._say(f"{name}: deliver {in_words(message, lambda _: True)[0]}")

    def _say(self, text: str) -> None:
        named = KEY.sub(lambda found: self._shown_as.get(found[0], found[0]), text)
        self._lines.append(f"{self._network.clock.now_us / 1e6:.3f}  {named}")


def main() -> None:
    """Rewrite the named scripts."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(run(path.read_text()))


if __name__ == "__main__":
    main()
