"""Draws a scene as SVG: lifelines from top to bottom, time downwards, messages as slanted arrows.

A message runs from the place of its sending to the place of its complete arrival. A lost message ends in a
cross on the way; one whose arrival was not captured ends in a ring. A run of messages is one thick arrow: the
area between its first and last message, with a fine line for each message while these can be told apart. An
arrow without room for its label has it as a tooltip.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from analysis.pages.diagram.arrow_drawing import draw_arrows, draw_end, draw_label, style_of
from analysis.pages.diagram.canvas import LEFT, STYLE, TOP, Canvas, canvas_of
from analysis.pages.diagram.label_placer import Point
from analysis.pages.diagram.scene import Arrow, Flight, Scene
from analysis.pages.report.formatting import EN_DASH, count_of
from analysis.schemas import ARRIVED, LOST, UNSEEN
from topologies.drawing.svg import Attributes, document, element


@dataclass(frozen=True, slots=True)
class Picture:
    """A standalone SVG document and its intended size in pixels. command: draws it again."""

    svg: str
    width: int
    height: int
    command: str

    @property
    def encoded(self) -> str:
        """The document in base64, so that a page is self-contained."""
        return base64.b64encode(self.svg.encode()).decode()


def diagram_svg(scene: Scene) -> Picture:
    """Return the picture of a scene."""
    canvas = canvas_of(scene)
    _draw_heading(canvas)
    _draw_time(canvas)
    _draw_disturbances(canvas)
    _draw_lifelines(canvas)
    under, canvas.parts = canvas.parts, []
    draw_arrows(canvas)
    inside, canvas.parts = element("g", {"clip-path": "url(#area)"}, *canvas.parts), under
    canvas.parts.append(inside)
    for arrow in sorted(
        scene.arrows, key=lambda each: (-scene.ranks.rank(each.type), each.fate == ARRIVED, each.sent_s)
    ):
        draw_label(canvas, arrow)
    height = draw_notes(canvas, draw_legend(canvas))
    shown = f"{count_of(scene.messages, 'message')} between {count_of(len(scene.lifelines), 'host')}"
    area = element("rect", {"x": 0.0, "y": TOP, "width": canvas.width, "height": canvas.height})
    svg = document(
        canvas.parts + canvas.labels,
        (canvas.width, height),
        title=f"{scene.title}: {shown}",
        style=STYLE,
        definitions=[element("clipPath", {"id": "area"}, area)],
    )
    return Picture(svg, round(canvas.width), round(height), scene.command)


def _draw_heading(canvas: Canvas) -> None:
    scene = canvas.scene
    canvas.text(LEFT - 46, 30, scene.title, "title")
    when = f"{scene.from_s:.2f}{EN_DASH}{scene.to_s:.2f} s since start, time runs downwards"
    canvas.text(LEFT - 46, 50, f"{when}; {count_of(scene.messages, 'message')}", "faint")


def _draw_lifelines(canvas: Canvas) -> None:
    """Draw the hosts, grouped under their region's name."""
    for _, group in groupby(canvas.scene.lifelines, key=lambda line: line.region):
        lines = list(group)
        left, right = canvas.x_of[lines[0].host], canvas.x_of[lines[-1].host]
        size: Attributes = {"width": right - left + 84, "height": "4", "rx": "2", "fill": lines[0].colour}
        canvas.parts.append(element("rect", {"x": left - 42, "y": "72", **size}))
        canvas.text((left + right) / 2, 92, lines[0].region, "region", "middle")
        for line in lines:
            x = canvas.x_of[line.host]
            canvas.text(x, 108, line.host.removeprefix(f"{line.region}-"), "faint", "middle")
            canvas.line((x, TOP - 5), (x, canvas.bottom + 6), "life")


def _draw_time(canvas: Canvas) -> None:
    for tick in _ticks(canvas.scene.from_s, canvas.scene.to_s):
        y = canvas.y(tick)
        canvas.line((LEFT - 6, y), (canvas.width - 8, y), "grid")
        canvas.text(LEFT - 12, y + 4, f"{tick:.6f}".rstrip("0").rstrip(".") + " s", "faint", "end")


def _ticks(from_s: float, to_s: float) -> Iterator[float]:
    steps = (n * 10.0**power for power in range(-6, 13) for n in (1, 2, 5))
    step = next(step for step in steps if (to_s - from_s) / step <= 14)
    first = int(from_s / step) - 1
    for count in range(first, first + 20):
        if from_s - 1e-9 <= count * step <= to_s + 1e-9:
            yield count * step


def _draw_disturbances(canvas: Canvas) -> None:
    for fault in canvas.scene.disturbances:
        top = max(canvas.y(fault.start), TOP)
        end = canvas.bottom if fault.end is None else min(canvas.y(fault.end), canvas.bottom)
        size = {"width": canvas.width - 8 - LEFT + 6, "height": max(end - top, 1.0)}
        canvas.parts.append(element("rect", {"x": LEFT - 6, "y": top, **size, "class": "band"}))
        for time_s, at in ((fault.start, top), (fault.end, end)):
            if time_s is not None and canvas.scene.from_s <= time_s <= canvas.scene.to_s:
                canvas.line((LEFT - 6, at), (canvas.width - 8, at), "edge")
        name = top + 15 if end - top > 20 else top - 4
        canvas.text(LEFT - 2, name, fault.label, "fault")
        canvas.places.take(LEFT - 6, name - 13, LEFT + 7.0 * len(fault.label), name + 4)


LEGEND_ROW, NOTE_ROW = 22.0, 17.0


def draw_legend(canvas: Canvas) -> float:
    """Draw message types and signs. Returns the height of the last row."""
    x, y = LEFT - 6, canvas.bottom + 34
    entries = [(name, colour, name) for name, colour in canvas.colours.items()]
    signs = [("lost", LOST), ("receiver not captured", UNSEEN)]
    entries += [
        (fate, "var(--ink)", text) for text, fate in signs if any(a.fate == fate for a in canvas.scene.arrows)
    ]
    if any(len(arrow.flights) > 1 for arrow in canvas.scene.arrows):
        entries.append(("thick", "var(--faint)", "several messages in a row"))
    if any(arrow.retransmitted for arrow in canvas.scene.arrows):
        entries.append(("again", "", "↻ retransmitted"))
    for kind, colour, text in entries:
        sign = 0.0 if kind == "again" else 34.0
        size = sign + 6.9 * len(text) + 26
        if x + size > canvas.width:
            x, y = LEFT - 6, y + LEGEND_ROW
        if sign:
            _draw_sign(canvas, kind, colour, (x, y - 4))
        canvas.text(x + sign, y, text)
        x += size
    return y


def _draw_sign(canvas: Canvas, kind: str, colour: str, at: Point) -> None:
    x, y = at
    fate = kind if kind in (LOST, UNSEEN) else ARRIVED
    sample = Arrow(kind, "", "", fate, "", (Flight(0.0, None),), 0.0)
    if kind == "thick":
        place: Attributes = {"x": x, "y": y - 5, "width": "26", "height": "10"}
        canvas.parts.append(element("rect", {**place, "class": "thick", "fill": colour}))
    canvas.line((x, y), (x + (20 if fate == LOST else 26), y), style_of("message", sample), colour)
    draw_end(canvas, sample, ((x, y), (x + (20 if fate == LOST else 26), y)), colour)


def draw_notes(canvas: Canvas, y: float) -> float:
    """Draw what is left out and the command that draws the picture again.

    Returns the picture's lower edge.
    """
    left_out = list(canvas.scene.left_out)
    if canvas.unlined:
        shorter = "a shorter time window shows them"
        left_out.append(f"the lines of {count_of(canvas.unlined, 'message')} within thick arrows ({shorter})")
    if canvas.unlabelled:
        left_out.append(f"{count_of(canvas.unlabelled, 'label')} (point at an arrow to read it)")
    y += 8
    if canvas.scene.error_ms is not None:
        y += NOTE_ROW
        text = f"times between machines: ±{canvas.scene.error_ms:.3f} ms clock error"
        canvas.text(LEFT - 6, y, text, "faint")
    if left_out:
        for row in _wrapped(["Left out:", *"; ".join(left_out).split()], int((canvas.width - LEFT) / 6.6)):
            y += NOTE_ROW
            canvas.text(LEFT - 6, y, row, "faint")
    y += NOTE_ROW
    for row in _wrapped(canvas.scene.command.split(), int((canvas.width - LEFT) / 6.9)):
        canvas.text(LEFT - 6, y, row, "faint command")
        y += NOTE_ROW
    return y + 4


def _wrapped(words: Sequence[str], width: int) -> list[str]:
    rows = [""]
    for word in words:
        if rows[-1] and len(rows[-1]) + 1 + len(word) > width:
            rows.append("")
        rows[-1] += (" " if rows[-1] else "") + word
    return rows
