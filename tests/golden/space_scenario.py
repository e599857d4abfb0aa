"""Golden scenarios of nodes that divide a space: a script contains their actions and the results.

The text's form is that of `tests.golden.script`. A node's region is its position, x,y in milliseconds: the
delay of a message is the distance. The space has as many dimensions as the points in the script.

    node a in 0,10
    show GRANT REPORT takeover

Commands, after the second of their execution:

    start b 0.75,0.25         a node joins at a point, through the first one, which takes no point
    route a 0.75,0.25         a message that only shows its path: HELLO
    leave b
    kill b
    part a b                  separate these nodes from the others, in both directions
    heal
    zones                     list each node's zones
    end

Messages are shown with their content: the routed message follows ROUTE. Ids are shown as the nodes' names.
When a change of a script is understood: `python -m tests.golden.space_scenario FILE…` rewrites it.
"""

import re
import sys
from collections.abc import Iterator
from math import hypot
from pathlib import Path
from random import Random
from typing import Any

from node.core import machine as m
from node.core.peers.peer_pool import ReceivedFrom, Unreachable
from node.protocols.can.messages import Route, coordinates_of, point_of
from node.protocols.can.overlay import Can
from node.protocols.can.parameters import CanParameters
from node.protocols.can.zones import Point
from node.protocols.reachability.messages import Relay
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.sim.flat_network import FlatNetwork
from tests.golden.reading import in_words
from tests.golden.script import Command, Script, read, with_followed
from tests.node.protocols.can.overlays import Letter

DIGITS = re.compile(r"\b[0-9a-f]{6}\b")
SEQUENCE = re.compile(r" #\d+")
ADDRESS = re.compile(r"\b0\.0\.0\.(\d+)\b")


def run(text: str) -> str:
    """Run the script and return it with its results."""
    return with_followed(text, Scenario(read(text)).play())


class Node:
    """A node of the scenario."""

    frame_limit_bytes = 1 << 20

    def __init__(self, scenario: "Scenario", name: str, contacts: list[int], point: Point | None) -> None:
        self.name, self.contacts, self.point, self.effects = name, contacts, point, []
        self.scenario = scenario
        own = NodeHandle(id_of(name), scenario.address(name))
        parameters = CanParameters(**scenario.script.parameters)
        rng = Random(own.address)
        self.can = Can(own, scenario.dimensions, parameters, rng, emit=self.emit, application=self)

    def emit(self, effect: Any) -> None:
        self.effects.append(effect)

    def handle(self, given: Any, now_us: int) -> list[Any]:
        self.effects = []
        match given:
            case ReceivedFrom():
                self.can.take(given.address, given.messages, now_us)
            case m.Started():
                self.can.start(self.contacts, now_us, self.point)
            case m.TimerFired():
                self.can.timer(given.timer, now_us)
            case Unreachable():
                self.can.unreachable(given, now_us)
        return self.effects

    def act(self, do: Any, now_us: int) -> list[Any]:
        self.effects, self.can.reach.now_us = [], now_us
        do(self.can)
        return self.effects

    def point_of(self, message: Letter) -> Point:
        return point_of(message.point)

    def deliver(self, message: Letter, point: Point) -> None:
        self.scenario.say(f"{self.name}: deliver HELLO")

    def receive(self, sender: int, message: Any) -> None: ...

    def split(self, zone: Any, joining: NodeHandle) -> None: ...

    def gave(self, zone: Any, to: NodeHandle) -> None:
        self.scenario.say(f"{self.name}: gave {shown(zone)} to {self.scenario.names[to.address]}", "gave")

    def gained(self, zone: Any, giver: NodeHandle | None) -> None:
        source = self.scenario.names[giver.address] if giver else "nobody"
        self.scenario.say(f"{self.name}: gained {shown(zone)} from {source}", "gained")

    def zones_changed(self) -> None: ...

    def sends_on(self, join: Any) -> bool:
        return False

    def is_shared(self, message: Any) -> bool:
        return False

    def failed(self, node: NodeHandle) -> None: ...


class Scenario:
    """A script that is played."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.names = dict(enumerate(script.regions, 1))
        self._where = [tuple(map(float, region.split(","))) for region in script.regions.values()]
        self._shown_as = {f"{id_of(name):032x}"[:6]: name for name in script.regions}
        points = [word for command in script.commands for word in command.words if "," in word]
        self.dimensions = len(points[0].split(",")) if points else 2
        self._lines: list[str] = []
        self._network = FlatNetwork(self._delay_us, self._told)
        self._network.watch = self._watch

    def address(self, name: str) -> int:
        """Return the address of a node."""
        return next(number for number, other in self.names.items() if other == name)

    def play(self) -> Iterator[tuple[Command, list[str]]]:
        """Each command with what followed it, until the next one."""
        commands = self.script.commands
        for command, following in zip(commands, [*commands[1:], commands[-1]], strict=True):
            self._network.run(command.at_us)
            getattr(self, f"_{command.verb}")(*command.words)
            self._network.run(following.at_us - 1)
            yield command, self._lines
            self._lines = []

    # --- Commands

    def _start(self, name: str, point: str = "") -> None:
        contacts = [self.address(next(iter(self.script.regions)))] if point else []
        node = Node(self, name, contacts, point_of_text(point) if point else None)
        self._network.start(self.address(name), node)

    def _route(self, name: str, point: str) -> None:
        letter = Letter(0, coordinates_of(point_of_text(point)))
        self._act(name, lambda can: can.route(letter))

    def _leave(self, name: str) -> None:
        self._act(name, lambda can: can.leave())

    def _act(self, name: str, do: Any) -> None:
        self._network.call(self.address(name), lambda node, now_us: node.act(do, now_us))

    def _kill(self, *names: str) -> None:
        for name in names:
            self._network.kill(self.address(name))

    def _part(self, *names: str) -> None:
        side = {self.address(name) for name in names}
        self._network.reaches = lambda a, b: (a in side) == (b in side)

    def _heal(self) -> None:
        self._network.reaches = lambda a, b: True

    def _zones(self) -> None:
        for node in self._network.nodes.values():
            can: Can = node.machine.can  # type: ignore[attr-defined]
            zones = " and ".join(
                shown(zone) + (f" v{version}" if version else "")
                for zone, version in sorted(can.claims.own.versions.items())
            )
            beside = sorted(self.names[address] for address in can.claims.others)
            self.say(f"{self.names[can.own.address]}: {zones or 'nothing'}; beside {' '.join(beside)}")

    def _end(self) -> None: ...

    # --- What followed

    def _delay_us(self, a: int, b: int) -> int:
        (x, y), (u, v) = self._where[a - 1], self._where[b - 1]
        return round(1_000 * hypot(x - u, y - v))

    def _watch(self, source: int, target: int, messages: Any) -> None:
        for message in messages:
            way, inner = "", message
            while isinstance(inner, Route | Relay):
                way, inner = way + f"{type(inner).__name__.upper()} ", inner.message
            name, said = ("HELLO", "") if isinstance(inner, Letter) else in_words(inner, lambda _: True)
            line = f"{self.names[source]} -> {self.names[target]}  {way}{name} {SEQUENCE.sub('', said)}"
            self.say(line.rstrip(), name)

    def _told(self, address: int, time_us: int, effect: m.Effect) -> None:
        if isinstance(effect, m.Log):
            peer = self.names.get(effect.fields.get("peer", 0), "")
            self.say(f"{self.names[address]}: {effect.event} {peer}".rstrip(), effect.event)

    def say(self, text: str, kind: str = "") -> None:
        """Add a line, if lines of this kind are shown."""
        if kind and kind not in self.script.shown:
            return
        named = DIGITS.sub(lambda found: self._shown_as.get(found[0], found[0]), text)
        named = ADDRESS.sub(lambda found: self.names[int(found[1])], named)
        self._lines.append(f"{self._network.clock.now_us / 1e6:.3f}  {named}")


def shown(zone: Any) -> str:
    """Format a zone."""
    return " x ".join(f"{low:g}..{high:g}" for low, high in zip(zone.low, zone.high, strict=True))


def point_of_text(text: str) -> Point:
    """Parse a point."""
    return tuple(map(float, text.split(",")))


def main() -> None:
    """Rewrite the named scripts."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(run(path.read_text()))


if __name__ == "__main__":
    main()
