"""What a diagram is drawn on: how times and hosts become places, and what is drawn so far."""

from dataclasses import dataclass, field
from html import escape

from analysis.diagram.looks import colours
from analysis.diagram.placing import Places, Point
from analysis.diagram.scene import Scene

LEFT, RIGHT = 66.0, 30.0
TOP = 118.0  # title and the lifelines' heads
WIDTH_MIN = 640.0
APART_MIN, APART_MAX = 124.0, 250.0  # lifelines
WIDTH_WANTED = 1100.0
HEIGHT_MIN, HEIGHT_MAX = 420.0, 1300.0
HEIGHT_OF_ARROW, HEIGHT_OF_SECOND = 19.0, 430.0


@dataclass(slots=True)
class Canvas:
    """What is drawn so far, and how times and hosts become places."""

    scene: Scene
    x_of: dict[str, float]
    height: float  # of the area
    width: float
    colours: dict[str, str]
    places: Places
    parts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  # on top of everything
    unlabelled: int = 0
    unlined: int = 0  # messages within thick arrows that have no line of their own

    @property
    def bottom(self) -> float:
        """The lower edge of the area."""
        return TOP + self.height

    def y(self, time_s: float) -> float:
        """Where a time is, also outside the picture."""
        return TOP + (time_s - self.scene.from_s) / (self.scene.to_s - self.scene.from_s) * self.height

    def line(self, a: Point, b: Point, style: str, stroke: str = "") -> None:
        """A straight line."""
        colour = f' stroke="{stroke}"' if stroke else ""
        ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
        self.parts.append(f'<line {ends} class="{style}"{colour}/>')

    def text(self, x: float, y: float, content: str, style: str = "", anchor: str = "start") -> None:
        """A line of text with its baseline at y."""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self.parts.append(f'<text {place} class="{style}">{escape(content)}</text>')


def canvas_of(scene: Scene) -> Canvas:
    """An empty canvas of the size that this scene needs."""
    gaps = max(1, len(scene.lifelines) - 1)
    apart = min(max((WIDTH_WANTED - LEFT - RIGHT) / (gaps + 1), APART_MIN), APART_MAX)
    needed = LEFT + RIGHT + apart * (gaps + 1)
    width = max(needed, WIDTH_MIN)
    start = LEFT + (width - LEFT - RIGHT - apart * gaps) / 2
    wanted = max(160 + HEIGHT_OF_ARROW * len(scene.arrows), HEIGHT_OF_SECOND * (scene.to_s - scene.from_s))
    height = min(max(HEIGHT_MIN, wanted), HEIGHT_MAX)
    canvas = Canvas(
        scene,
        {line.host: start + apart * number for number, line in enumerate(scene.lifelines)},
        height,
        width,
        colours((arrow.type for arrow in scene.arrows), scene.ranks),
        Places(LEFT, TOP, width - 4, TOP + height),
    )
    for x in canvas.x_of.values():
        canvas.places.take(x - 1, TOP, x + 1, TOP + height)
    return canvas
