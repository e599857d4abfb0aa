"""Pictures as SVG: lines, boxes and texts, each with a class of the picture's style sheet.

Coordinates are pixels from the upper left corner. The style sheet gives `.paper` its colour.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

from topologies.layout import Box

Point = tuple[float, float]


@dataclass(slots=True)
class Drawing:
    """What is drawn so far, as elements of SVG."""

    parts: list[str] = field(default_factory=list, kw_only=True)

    def line(self, a: Point, b: Point, style: str, stroke: str = "") -> None:
        """A straight line. stroke: its colour, if not that of its class."""
        colour = f' stroke="{stroke}"' if stroke else ""
        ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
        self.parts.append(f'<line {ends} class="{style}"{colour}/>')

    def text(self, x: float, y: float, content: str, style: str = "", anchor: str = "start") -> None:
        """A line of text with its baseline at y."""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self.parts.append(f'<text {place} class="{style}">{escape(content)}</text>')

    def box(self, box: Box, style: str, *, radius: float = 0.0, extra: str = "") -> None:
        """A rectangle. extra: more attributes."""
        self.parts.append(
            f'<rect x="{box.x - box.width / 2:.1f}" y="{box.y - box.height / 2:.1f}" width="{box.width:.1f}" '
            f'height="{box.height:.1f}" rx="{radius:.0f}" class="{style}"{extra}/>'
        )


def document(
    parts: Iterable[str], size: Point, *, title: str, style: str, definitions: Iterable[str] = ()
) -> str:
    """The whole picture, which stands by itself. size: width and height. title: what it is read aloud as."""
    width, height = (f"{length:.0f}" for length in size)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'width="{width}" height="{height}" aria-label="{escape(title)}">',
            f"<style>{style}</style>",
            *definitions,
            '<rect width="100%" height="100%" class="paper"/>',
            *parts,
            "</svg>\n",
        )
    )
