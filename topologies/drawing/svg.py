"""Pictures as SVG: lines and texts, each with a class of the picture's style sheet.

Coordinates are pixels from the upper left corner. The style sheet gives `.paper` its colour. `element`
creates all elements and escapes attribute values.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

Point = tuple[float, float]
Attributes = Mapping[str, str | float]
"""The attributes of an element; numbers are rounded to a tenth."""
_NO_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML documents may not contain, escaped or not (XML 1.0, section 2.2)."""


def element(name: str, attributes: Attributes, *inside: str) -> str:
    """Return an element. inside: elements and `plain` texts."""
    texts = {key: value if isinstance(value, str) else f"{value:.1f}" for key, value in attributes.items()}
    shown = "".join(f' {key}="{plain(value)}"' for key, value in texts.items())
    return f"<{name}{shown}>{''.join(inside)}</{name}>" if inside else f"<{name}{shown}/>"


def plain(text: str) -> str:
    """Return a text escaped for content and for attributes."""
    return escape(_NO_XML.sub("\ufffd", text))


@dataclass(slots=True)
class SvgDrawing:
    """The elements of SVG drawn so far."""

    parts: list[str] = field(default_factory=list, kw_only=True)

    def line(self, a: Point, b: Point, style: str, stroke: str = "") -> None:
        """Draw a straight line. stroke: its colour, if not that of its class."""
        colour = {"stroke": stroke} if stroke else {}
        ends: Attributes = {"x1": a[0], "y1": a[1], "x2": b[0], "y2": b[1]}
        self.parts.append(element("line", {**ends, "class": style, **colour}))

    def text(self, x: float, y: float, content: str, style: str = "", anchor: str = "start") -> None:
        """Draw a line of text with its baseline at y."""
        place: Attributes = {"x": x, "y": y, "text-anchor": anchor, "class": style}
        self.parts.append(element("text", place, plain(content)))


def document(
    parts: Iterable[str], size: Point, *, title: str, style: str, definitions: Iterable[str] = ()
) -> str:
    """Return the whole picture as a document. size: width and height. title: for screen readers."""
    width, height = (f"{length:.0f}" for length in size)
    around = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {width} {height}",
        "role": "img",
        "width": width,
        "height": height,
        "aria-label": title,
    }
    paper = element("rect", {"width": "100%", "height": "100%", "class": "paper"})
    lines = ("", element("style", {}, style), *definitions, paper, *parts, "")
    return element("svg", around, "\n".join(lines)) + "\n"
