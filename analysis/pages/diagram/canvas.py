"""The drawing area of a diagram: maps times and hosts to positions and collects the shapes.

Its style sheet follows the viewer's light or dark mode and needs no scripts and no external fonts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from analysis.pages.diagram.label_placer import LabelPlacer
from analysis.pages.diagram.ranks import Ranks
from analysis.pages.diagram.scene import Scene
from topologies.drawing.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, YELLOW
from topologies.drawing.svg import SvgDrawing

OTHER = "var(--faint)"
_EVENTS = "var(--events)"
_COLOURS = {
    "vermillion": VERMILLION,
    "orange": ORANGE,
    "green": GREEN,
    "purple": PURPLE,
    "answers": "var(--answers)",
}
"""Colours by the names that a `Reading` gives them."""
_FREE = (PURPLE, VERMILLION, ORANGE, GREEN)  # for other types, if no type in the picture uses them
STYLE = f"""
svg {{ --paper: #ffffff; --ink: #1a1c20; --faint: #5a606a; --grid: #ececef; --line: #9aa1ab; }}
svg {{ --band: rgb(60 66 76 / 13%); --events: {BLUE}; --answers: {SKY}; }}
@media (prefers-color-scheme: dark) {{
  svg {{ --paper: #1a1d23; --ink: #e9eaec; --faint: #a0a7b2; --grid: #282c34; --line: #6d7581; }}
  svg {{ --band: rgb(200 206 216 / 15%); --events: {SKY}; --answers: {YELLOW}; }}
}}
.paper {{ fill: var(--paper); }}
text {{ font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }}
text {{ fill: var(--ink); font-variant-numeric: tabular-nums; }}
.title {{ font-size: 18px; font-weight: 650; }}
.faint {{ fill: var(--faint); }}
.region {{ font-size: 14px; font-weight: 700; }}
.command {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 11px; }}
.label {{ font-size: 11px; text-anchor: middle; dominant-baseline: central; }}
.label {{ paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }}
.fault {{ font-weight: 600; fill: var(--faint); }}
.life {{ stroke: var(--line); stroke-width: 1.5; }}
.grid {{ stroke: var(--grid); stroke-width: 1; }}
.band {{ fill: var(--band); }}
.edge {{ stroke: var(--faint); stroke-width: 1.2; stroke-dasharray: 7 5; }}
.message {{ fill: none; stroke-width: 1.6; }}
.member {{ fill: none; stroke-width: 0.9; stroke-opacity: 0.55; }}
.thick {{ fill-opacity: 0.13; }}
.lost {{ stroke-dasharray: 5 3; }}
.unseen {{ stroke-dasharray: 1.5 3.5; }}
.cross {{ fill: none; stroke-width: 2.4; }}
@media (prefers-color-scheme: dark) {{
  .member {{ stroke-opacity: 0.7; }}
  .thick {{ fill-opacity: 0.16; }}
}}
""".strip()


def colours(types: Iterable[str], ranks: Ranks) -> dict[str, str]:
    """Return the colour of each message type in a picture.

    Types without their own colour get the remaining ones.
    """
    named = sorted(set(types))
    own = {name: _COLOURS[colour] for name, colour in ranks.colours.items() if colour in _COLOURS}
    own |= dict.fromkeys(ranks.events, _EVENTS)
    used = {own.get(name) for name in named}
    free = [each for each in _FREE if each not in used]
    found = {}
    for name in named:
        found[name] = own.get(name) or (free.pop(0) if free else OTHER)
    return found


LEFT, RIGHT = 66.0, 30.0
TOP = 118.0  # title and the heads of the lifelines
WIDTH_MIN = 640.0
APART_MIN, APART_MAX = 124.0, 250.0  # between lifelines
WIDTH_WANTED = 1100.0
HEIGHT_MIN, HEIGHT_MAX = 420.0, 1300.0
HEIGHT_OF_ARROW, HEIGHT_OF_SECOND = 19.0, 430.0


@dataclass(slots=True)
class Canvas(SvgDrawing):
    """The drawing so far, and the mapping from times and hosts to positions."""

    scene: Scene
    x_of: dict[str, float]
    height: float  # of the area
    width: float
    colours: dict[str, str]
    places: LabelPlacer
    labels: list[str] = field(default_factory=list)  # drawn on top of everything
    unlabelled: int = 0
    unlined: int = 0  # messages within thick arrows that have no line of their own

    @property
    def bottom(self) -> float:
        """The lower edge of the area."""
        return TOP + self.height

    def y(self, time_s: float) -> float:
        """Return the vertical position of a time, which may be outside the picture."""
        return TOP + (time_s - self.scene.from_s) / (self.scene.to_s - self.scene.from_s) * self.height


def canvas_of(scene: Scene) -> Canvas:
    """Return an empty canvas of the size that this scene needs."""
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
        LabelPlacer(LEFT, TOP, width - 4, TOP + height),
    )
    for x in canvas.x_of.values():
        canvas.places.take(x - 1, TOP, x + 1, TOP + height)
    return canvas
