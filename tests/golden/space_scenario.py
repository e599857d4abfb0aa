"""Golden scenarios of nodes that divide a space: a script contains their actions and the results.

The text's form is that of `tests.golden.script`. The space has as many dimensions as the points in it.

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
"""

import re
from random import Random
from typing import Any

from node.core import machine as m
from node.protocols.can.messages import Route, coordinates_of
from node.protocols.can.overlay import Can
from node.protocols.can.parameters import CanParameters
from node.protocols.can.zones import Point
from node.protocols.reachability.nodes import NodeHandle, id_of
from tests.golden.flat_scenario import FlatScenario
from tests.golden.script import Script
from tests.node.protocols.can.overlays import CanNode, Letter

SEQUENCE = re.compile(r" #\d+")
ADDRESS = re.compile(r"\b0\.0\.0\.(\d+)\b")


class Node(CanNode):
    """A node of the scenario. Its id follows from its name."""

    def __init__(self, scenario: "Scenario", name: str, contacts: list[int], point: Point | None) -> None:
        super().__init__(contacts, [])
        self.name, self.point, self.scenario = name, point, scenario
        own = NodeHandle(id_of(name), scenario.address(name))
        parameters = CanParameters(**scenario.script.parameters)
        rng = Random(own.address)
        self.layer = self.can = Can(
            own, scenario.dimensions, parameters, rng, emit=self.emit, application=self
        )

    def start(self, given: m.Started, now_us: int) -> None:
        self.can.start(self.contacts, now_us, self.point)

    def deliver(self, message: Letter) -> None:
        self.scenario.say(f"{self.name}: deliver HELLO")

    def gave(self, zone: Any, to: NodeHandle) -> None:
        self.scenario.say(f"{self.name}: gave {shown(zone)} to {self.scenario.names[to.address]}", "gave")

    def gained(self, zone: Any, giver: NodeHandle | None) -> None:
        source = self.scenario.names[giver.address] if giver else "nobody"
        self.scenario.say(f"{self.name}: gained {shown(zone)} from {source}", "gained")


class Scenario(FlatScenario):
    """Plays a script."""

    routed = Route

    def __init__(self, script: Script) -> None:
        points = [word for command in script.commands for word in command.words if "," in word]
        self.dimensions = len(points[0].split(",")) if points else 2
        super().__init__(script)

    def id_of(self, name: str) -> int:
        """Return the id that follows from a name."""
        return id_of(name)

    # --- Commands

    def _start(self, name: str, point: str = "") -> None:
        contacts = [self.address(next(iter(self.script.regions)))] if point else []
        node = Node(self, name, contacts, point_of_text(point) if point else None)
        self.network.start(self.address(name), node)

    def _route(self, name: str, point: str) -> None:
        letter = Letter(0, coordinates_of(point_of_text(point)))
        self._act(name, lambda can: can.route(letter))

    def _leave(self, name: str) -> None:
        self._act(name, lambda can: can.leave())

    def _act(self, name: str, do: Any) -> None:
        self.network.act(self.address(name), lambda node: do(node.can))

    def _part(self, *names: str) -> None:
        side = {self.address(name) for name in names}
        self.network.reaches = lambda a, b: (a in side) == (b in side)

    def _heal(self) -> None:
        self.network.reaches = lambda a, b: True

    def _zones(self) -> None:
        for node in self.network.nodes.values():
            can: Can = node.machine.can
            zones = " and ".join(
                shown(zone) + (f" v{version}" if version else "")
                for zone, version in sorted(can.claims.own.versions.items())
            )
            beside = sorted(self.names[address] for address in can.claims.others)
            self.say(f"{self.names[can.own.address]}: {zones or 'nothing'}; beside {' '.join(beside)}")

    # --- What followed

    def words_of(self, message: Any) -> tuple[str, str]:
        """Return a message's name and phrases, without numbers of messages."""
        name, said = ("HELLO", "") if isinstance(message, Letter) else super().words_of(message)
        return name, SEQUENCE.sub("", said)

    def say(self, text: str, kind: str = "") -> None:
        """Add a line if its kind is shown; addresses are shown as names."""
        super().say(ADDRESS.sub(lambda found: self.names[int(found[1])], text), kind)


def shown(zone: Any) -> str:
    """Format a zone."""
    return " x ".join(f"{low:g}..{high:g}" for low, high in zip(zone.low, zone.high, strict=True))


def point_of_text(text: str) -> Point:
    """Parse a point."""
    return tuple(map(float, text.split(",")))
