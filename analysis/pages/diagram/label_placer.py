"""Places labels along their arrows where they overlap least."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

Point = tuple[float, float]

CHARACTER_WIDTH, CAPITAL_WIDTH = 6.7, 7.7  # approximate, of the labels' font
BETWEEN = 8.0  # pixels between two labels in a line
LINE_HEIGHT = 13.0
STEEPEST = math.radians(38)  # a steeper arrow has a level label beside it
_ALONG = (0.5, 0.36, 0.64, 0.25, 0.75, 0.15, 0.85)
_SIDES = (-1, 1)  # above the arrow, below it
COVERED_MAX = 0.06  # largest fraction of a label that others may cover; with more it is unreadable


@dataclass(frozen=True, slots=True)
class PlacedLabel:
    """The position of a text's centre, and its angle in degrees."""

    x: float
    y: float
    angle: float


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: "_Box") -> float:
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0.0) * max(down, 0.0)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)


@dataclass(slots=True)
class LabelPlacer:
    """Records the occupied areas of a drawing and finds room for the next label."""

    left: float
    top: float
    right: float
    bottom: float
    _taken: list[_Box] = field(default_factory=list)

    def take(self, left: float, top: float, right: float, bottom: float) -> None:
        """Mark an area as occupied."""
        self._taken.append(_Box(left, top, right, bottom))

    def along(self, a: Point, b: Point, text: str, *, away: float = 5.0) -> PlacedLabel | None:
        """Return the best place for a text along the line from a to b, or None if it would cover others.

        away: pixels from the line to the nearest edge of the text's line.
        """
        width = BETWEEN + sum(CAPITAL_WIDTH if each.isupper() else CHARACTER_WIDTH for each in text)
        candidates = [
            (self._covered(boxes) + 0.02 * number, number, place, boxes)
            for number, (place, boxes) in enumerate(_candidates(a, b, width, away))
            if self._inside(boxes)
        ]
        if not candidates:
            return None
        cost, number, place, boxes = min(candidates, key=lambda each: each[:2])
        if cost - 0.02 * number > COVERED_MAX:
            return None
        self._taken.extend(boxes)
        return place

    def _covered(self, boxes: tuple[_Box, ...]) -> float:
        return sum(box.overlap(other) for box in boxes for other in self._taken) / sum(
            box.area for box in boxes
        )

    def _inside(self, boxes: tuple[_Box, ...]) -> bool:
        return all(
            self.left <= box.left
            and box.right <= self.right
            and self.top <= box.top
            and box.bottom <= self.bottom
            for box in boxes
        )


def _candidates(
    a: Point, b: Point, width: float, away: float
) -> Iterator[tuple[PlacedLabel, tuple[_Box, ...]]]:
    slope = math.atan2(b[1] - a[1], b[0] - a[0])
    reading = slope if abs(slope) <= math.pi / 2 else slope - math.copysign(math.pi, slope)  # left to right
    level = abs(reading) > STEEPEST
    for side in _SIDES:
        for part in _ALONG:
            x, y = a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part
            if level:
                place = PlacedLabel(x + side * (away + width / 2), y, 0.0)
            else:
                apart = side * (away + LINE_HEIGHT / 2 - 2)
                place = PlacedLabel(
                    x - math.sin(reading) * apart, y + math.cos(reading) * apart, math.degrees(reading)
                )
            yield place, _boxes(place, width)


def _boxes(place: PlacedLabel, width: float) -> tuple[_Box, ...]:
    """Return a slanted text as a row of upright boxes."""
    angle = math.radians(place.angle)
    pieces = max(1, math.ceil(width / 24))
    half = width / pieces / 2
    boxes = []
    for number in range(pieces):
        along = (number + 0.5) * 2 * half - width / 2
        x, y = place.x + math.cos(angle) * along, place.y + math.sin(angle) * along
        boxes.append(_Box(x - half, y - LINE_HEIGHT / 2, x + half, y + LINE_HEIGHT / 2))
    return tuple(boxes)
