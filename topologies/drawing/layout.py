"""The positions of a topology's regions in drawings, whose distances approximate those in the graph.

Distances are counted in links. Stress majorisation (E. Gansner, Y. Koren, S. North: Graph drawing by stress
majorization, 2004) approximates them, once from a circle and once from the distances' principal axes
(classical scaling); the better result is used. Rings and grids keep their shape, and a star has its hub in
the middle. A full mesh of four is the square of the Sprinkler paper's figure 8; a larger mesh, and a topology
with too many regions, is a circle. There is no randomness: a graph has one drawing.

Labels of links, boxes in pixels, are placed so that they cover neither each other nor regions. A label is on
its link, in the middle if there is room. The largest labels are placed first. A label without a free position
takes the one in which it covers least: links under a label count little, other labels and regions with their
whole area.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]
Edge = tuple[int, int]
Place = tuple[float, float]

_SQUARE = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
REGIONS_MAX = 40
"""More regions than this are placed on a circle."""
STEPS = 300
NEARLY = 0.15
"""Regions whose coordinates differ by less than this, in links, are aligned in one row or column."""
ALIGNED_MAX = 16
"""More regions than this are too close to each other to be aligned."""
FLAT = 0.15
"""A drawing whose shorter side is at most this part of its longer side is not stretched to a square."""
ALONG = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74)
"""The positions on a link that are tried, as fractions of its length."""
CROSSING = 200.0
"""The cost of a link under a label, in square pixels."""
MARGIN = 3.0


def layout(count: int, edges: Sequence[Edge]) -> tuple[Place, ...]:
    """Return positions from 0 to 1, y downwards, for `count` regions that `edges` join."""
    if not count:
        return ()
    joined = {frozenset(edge) for edge in edges}
    complete = len(joined) == count * (count - 1) // 2
    if complete and count == len(_SQUARE):
        return _SQUARE
    circle = _circle(count)
    points = circle
    if count > 2 and not complete and count <= REGIONS_MAX:
        hops = _hops(count, edges)
        starts = (circle, _own_axes(hops))
        points = min((_settled(start, hops) for start in starts), key=lambda found: _stress(found, hops))
    points = _aligned(min(_turned(points, edges), key=_untidiness))
    return tuple((float(x), float(y)) for x, y in _stretched(points))


def _circle(count: int) -> Points:
    """Return positions on a circle, the first region on top, the others clockwise; two are side by side."""
    angles = 2 * np.pi * np.arange(count) / max(1, count) - (np.pi if count == 2 else np.pi / 2)
    return np.column_stack((np.cos(angles), np.sin(angles)))


def _hops(count: int, edges: Sequence[Edge]) -> Points:
    """Return the distances between all regions in links; unconnected regions have the largest distance."""
    hops = np.full((count, count), float(count))
    np.fill_diagonal(hops, 0)
    for a, b in edges:
        hops[a, b] = hops[b, a] = 1
    for via in range(count):
        hops = np.minimum(hops, hops[:, via, None] + hops[None, via, :])
    return hops


def _own_axes(hops: Points) -> Points:
    """Return positions on the two principal axes of the distances (W. Torgerson: Psychometrika 17, 1952)."""
    centring = np.eye(len(hops)) - 1 / len(hops)
    values, vectors = np.linalg.eigh(-0.5 * centring @ hops**2 @ centring)
    found: Points = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0))
    return found


def _settled(points: Points, hops: Points) -> Points:
    """Move points until their distances approximate `hops`, in at most `STEPS` steps."""
    for _ in range(STEPS):
        apart = _apart(points)
        np.fill_diagonal(apart, 1)
        pulls = -hops / np.maximum(apart, 1e-9)
        np.fill_diagonal(pulls, 0)
        np.fill_diagonal(pulls, -pulls.sum(axis=1))
        points = pulls @ points / len(points)
    return points


def _apart(points: Points) -> Points:
    found: Points = np.linalg.norm(points[:, None] - points[None], axis=2)
    return found


def _stress(points: Points, hops: Points) -> float:
    return round(float(((_apart(points) - hops) ** 2).sum()), 6)


def _turned(points: Points, edges: Sequence[Edge]) -> list[Points]:
    """Return rotations and reflections with each link horizontal or vertical, or the first region on top."""
    points = points - points.mean(axis=0)
    along = [points[b] - points[a] for a, b in edges]
    angles = {round(math.atan2(y, x) % (math.pi / 2), 6) for x, y in along} | {
        round(math.atan2(y, x) + math.pi / 2, 6) for x, y in points[:2]
    }
    found = []
    for angle in sorted(angles) or [0.0]:
        for turn in range(4):
            c, s = math.cos(angle + turn * math.pi / 2), math.sin(angle + turn * math.pi / 2)
            seen = points @ np.array([[c, -s], [s, c]])
            found += [seen, seen * (1, -1)]
    return found


def _aligned(points: Points) -> Points:
    """Align regions that are nearly in a row or a column."""
    if len(points) > ALIGNED_MAX:
        return points
    found = points.copy()
    for axis in (0, 1):
        row: list[int] = []
        for number in np.argsort(points[:, axis], kind="stable").tolist():
            row = [*row, number] if row and points[number, axis] - points[row[0], axis] < NEARLY else [number]
            found[row, axis] = points[row, axis].mean()
    return found


def _untidiness(points: Points) -> tuple[float, ...]:
    """Return the sort key of a layout; smaller is tidier.

    It has the number of rows and columns, whether the layout is higher than wide, the deviation from aligned
    rows, the distance of the first region from the upper left, and of the second from the upper right.
    """
    aligned = _aligned(points)
    rows_and_columns = sum(len({round(float(v), 2) for v in aligned[:, axis]}) for axis in (0, 1))
    width, height = np.ptp(aligned, axis=0).round(2)
    crooked = round(float(np.abs(aligned - points).max()), 2)
    (x, y), *others = aligned.tolist()
    places = [y, x] + [value for x, y in others[:1] for value in (y, -x)]
    return rows_and_columns, height > width, crooked, *(round(place, 2) for place in places)


def _stretched(points: Points) -> Points:
    """Stretch points to the square from 0 to 1; a flat layout stays in its middle."""
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    flat = extent <= FLAT * extent.max()
    scale = np.where(flat, max(float(extent.max()), 1e-9), np.maximum(extent, 1e-9))
    found: Points = (points - low) / scale + np.where(flat, (1 - extent / scale) / 2, 0)
    return found


@dataclass(frozen=True, slots=True)
class LabelBox:
    """A rectangle, given by its middle."""

    x: float
    y: float
    width: float
    height: float

    def shared(self, other: "LabelBox") -> float:
        """Return the area of the overlap, with a margin between the boxes."""
        x = (self.width + other.width) / 2 + MARGIN - abs(self.x - other.x)
        y = (self.height + other.height) / 2 + MARGIN - abs(self.y - other.y)
        return max(0.0, x) * max(0.0, y)


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A link's line between its ends, and the size of its label."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    height: float

    def label_at(self, part: float) -> LabelBox:
        """Return the label's box at this fraction of the link's length."""
        x, y = self.x1 + (self.x2 - self.x1) * part, self.y1 + (self.y2 - self.y1) * part
        return LabelBox(x, y, self.width, self.height)


def beside(ends: Sequence[tuple[Place, Place]], apart: float) -> list[tuple[Place, Place]]:
    """Return the lines between these points, with those between the same two moved apart, in pixels."""
    alike: dict[frozenset[Place], list[int]] = {}
    for number, pair in enumerate(ends):
        alike.setdefault(frozenset(pair), []).append(number)
    moved = list(ends)
    for numbers in alike.values():
        (x1, y1), (x2, y2) = ends[numbers[0]]
        length = math.hypot(x2 - x1, y2 - y1) or 1.0
        for place, number in enumerate(numbers):
            aside = (place - (len(numbers) - 1) / 2) * apart / length
            x, y = (y1 - y2) * aside, (x2 - x1) * aside
            (ax, ay), (bx, by) = ends[number]
            moved[number] = (ax + x, ay + y), (bx + x, by + y)
    return moved


def place_labels(
    lines: Sequence[LabelledLine], regions: Sequence[LabelBox], within: tuple[float, float]
) -> tuple[LabelBox, ...]:
    """Return a box for each line's label, in the order of `lines`. within: the drawing's width and height."""
    taken, found = list(regions), dict[int, LabelBox]()
    for number in sorted(range(len(lines)), key=lambda n: -lines[n].width * lines[n].height):
        others = [line for n, line in enumerate(lines) if n != number]
        tried = [_moved_in(lines[number].label_at(part), within) for part in ALONG]
        found[number] = min(tried, key=lambda box: _covered(box, taken, others))
        taken.append(found[number])
    return tuple(found[number] for number in range(len(lines)))


def _moved_in(box: LabelBox, within: tuple[float, float]) -> LabelBox:
    """Shift a box so that it is inside the drawing."""
    x = min(max(box.x, box.width / 2), max(box.width / 2, within[0] - box.width / 2))
    y = min(max(box.y, box.height / 2), max(box.height / 2, within[1] - box.height / 2))
    return LabelBox(x, y, box.width, box.height)


def _covered(box: LabelBox, taken: Sequence[LabelBox], lines: Sequence[LabelledLine]) -> float:
    return sum(box.shared(other) for other in taken) + CROSSING * sum(_crosses(line, box) for line in lines)


def _crosses(line: LabelledLine, box: LabelBox) -> bool:
    """Return whether a link passes under a box, by clipping it to the box's sides (Liang and Barsky)."""
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
