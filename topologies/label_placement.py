"""Where labels on links stand so that they cover neither each other nor regions: plain boxes, in pixels.

A label stands on its link, in its middle if there is room. Those with most to say come first. If it has no
place to itself it takes the one in which it covers least: links under a label count for little, other labels
and regions for all of the area.
"""

from collections.abc import Sequence
from dataclasses import dataclass

ALONG = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74)
"""The places on a link that are tried, as parts of its length."""
CROSSING = 200.0
"""A link under a label counts as so many square pixels."""
MARGIN = 3.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle by its middle."""

    x: float
    y: float
    width: float
    height: float

    def shared(self, other: "Box") -> float:
        """The area that both cover, with a margin between them."""
        x = (self.width + other.width) / 2 + MARGIN - abs(self.x - other.x)
        y = (self.height + other.height) / 2 + MARGIN - abs(self.y - other.y)
        return max(0.0, x) * max(0.0, y)


@dataclass(frozen=True, slots=True)
class Line:
    """A link, from end to end, and the size of its label."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    height: float

    def label_at(self, part: float) -> Box:
        """The label's box at this part of the link."""
        x, y = self.x1 + (self.x2 - self.x1) * part, self.y1 + (self.y2 - self.y1) * part
        return Box(x, y, self.width, self.height)


def placed(lines: Sequence[Line], regions: Sequence[Box], within: tuple[float, float]) -> tuple[Box, ...]:
    """A box for each line's label, in the order of `lines`. within: the drawing's width and height."""
    taken, found = list(regions), dict[int, Box]()
    for number in sorted(range(len(lines)), key=lambda n: -lines[n].width * lines[n].height):
        others = [line for n, line in enumerate(lines) if n != number]
        tried = [_moved_in(lines[number].label_at(part), within) for part in ALONG]
        found[number] = min(tried, key=lambda box: _covered(box, taken, others))
        taken.append(found[number])
    return tuple(found[number] for number in range(len(lines)))


def _moved_in(box: Box, within: tuple[float, float]) -> Box:
    """Shifted so that nothing of it is cut off."""
    x = min(max(box.x, box.width / 2), max(box.width / 2, within[0] - box.width / 2))
    y = min(max(box.y, box.height / 2), max(box.height / 2, within[1] - box.height / 2))
    return Box(x, y, box.width, box.height)


def _covered(box: Box, taken: Sequence[Box], lines: Sequence[Line]) -> float:
    return sum(box.shared(other) for other in taken) + CROSSING * sum(_crosses(line, box) for line in lines)


def _crosses(line: Line, box: Box) -> bool:
    """Whether a link passes under a box: what is left of it between the box's sides (Liang and Barsky)."""
    low, high = 0.0, 1.0
    for start, length, middle, size in (
        (line.x1, line.x2 - line.x1, box.x, box.width),
        (line.y1, line.y2 - line.y1, box.y, box.height),
    ):
        near, far = middle - size / 2 - start, middle + size / 2 - start
        if not length:
            if near > 0 or far < 0:
                return False
            continue
        low, high = max(low, min(near / length, far / length)), min(high, max(near / length, far / length))
    return low < high
