"""The backlog: link directions with frames that were taken out of the rings and not admitted yet, by turns.

Each turn is a portion of work, after which the relay sends what is due and looks at the rings again. A
direction that has more than its portion goes to the end of the line: a burst on one link, or what has piled
up on it while the relay was held up, does not keep the others waiting for longer than a portion of each.
"""

from testbed.links.relay.way import Way

PORTION_BYTES = 200_000  # of frames admitted before the loop goes on, see `way.FRAME_COST_BYTES`


class Backlog:
    """Empty at first. False while it is empty."""

    __slots__ = ("_ways",)

    def __init__(self) -> None:
        self._ways: dict[Way, None] = {}  # in the order of their turns

    def __bool__(self) -> bool:
        return bool(self._ways)

    def add(self, way: Way) -> None:
        """Let a direction have its turn, after those that are waiting already."""
        self._ways[way] = None

    def admit_portion(self) -> None:
        """Admit a portion, of more than one direction if the first have less."""
        ways, room_bytes = self._ways, PORTION_BYTES
        while ways and room_bytes > 0:
            way = next(iter(ways))
            del ways[way]
            room_bytes = way.admit(room_bytes)
            if way.taken:
                ways[way] = None
