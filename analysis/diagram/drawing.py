"""A scene as SVG: lifelines from top to bottom, time downwards, messages as slanted arrows.

A message runs from where it was sent to where it was whole; one that was lost ends in a cross on the way, one
that nobody could have seen arrive in a ring. A run of messages is one thick arrow: the area between its first
message and its last, with a fine line for each while these can be told apart. What has no
room for a label keeps it as a tooltip.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby

from analysis.diagram.arrow_drawing import draw_arrows, draw_label
from analysis.diagram.canvas import LEFT, TOP, Canvas, canvas_of
from analysis.diagram.legend import draw_legend, draw_notes
from analysis.diagram.looks import STYLE
from analysis.diagram.scene import Scene
from analysis.report.formatting import EN_DASH, count_of
from analysis.schemas import ARRIVED


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG document of its own, and the size in pixels at which it is meant to be seen."""

    svg: str
    width: int
    height: int


def diagram_svg(scene: Scene) -> Picture:
    """Draw it."""
    canvas = canvas_of(scene)
    _draw_heading(canvas)
    _draw_time(canvas)
    _draw_disturbances(canvas)
    _draw_lifelines(canvas)
    canvas.parts.append('<g clip-path="url(#area)">')
    draw_arrows(canvas)
    canvas.parts.append("</g>")
    for arrow in sorted(
        scene.arrows, key=lambda each: (-scene.ranks.rank(each.type), each.fate == ARRIVED, each.sent_s)
    ):
        draw_label(canvas, arrow)
    height = draw_notes(canvas, draw_legend(canvas))
    shown = f"{count_of(scene.messages, 'message')} between {count_of(len(scene.lifelines), 'host')}"
    width, area = f"{canvas.width:.0f}", f'y="{TOP:.0f}" height="{canvas.height:.0f}"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" role="img" '
        f'width="{width}" height="{height:.0f}" aria-label="{escape(f"{scene.title}: {shown}")}">\n'
        f'<style>{STYLE}</style>\n<clipPath id="area"><rect x="0" width="{width}" {area}/></clipPath>\n'
        '<rect width="100%" height="100%" class="paper"/>\n'
        + "\n".join(canvas.parts + canvas.labels)
        + "\n</svg>\n"
    )
    return Picture(svg, round(canvas.width), round(height))


def _draw_heading(canvas: Canvas) -> None:
    scene = canvas.scene
    canvas.text(LEFT - 46, 30, scene.title, "title")
    when = f"{scene.from_s:.2f}{EN_DASH}{scene.to_s:.2f} s since start, time runs downwards"
    canvas.text(LEFT - 46, 50, f"{when}; {count_of(scene.messages, 'message')}", "faint")


def _draw_lifelines(canvas: Canvas) -> None:
    """Hosts, under the name of their region where several of it stand side by side."""
    for _, group in groupby(canvas.scene.lifelines, key=lambda line: line.region):
        lines = list(group)
        left, right = canvas.x_of[lines[0].host], canvas.x_of[lines[-1].host]
        size = f'width="{right - left + 84:.1f}" height="4" rx="2" fill="{lines[0].colour}"'
        canvas.parts.append(f'<rect x="{left - 42:.1f}" y="72" {size}/>')
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
        top = max(canvas.y(fault.start_s), TOP)
        end = canvas.bottom if fault.end_s is None else min(canvas.y(fault.end_s), canvas.bottom)
        size = f'width="{canvas.width - 8 - LEFT + 6:.1f}" height="{max(end - top, 1.0):.1f}"'
        canvas.parts.append(f'<rect x="{LEFT - 6:.1f}" y="{top:.1f}" {size} class="band"/>')
        for time_s, at in ((fault.start_s, top), (fault.end_s, end)):
            if time_s is not None and canvas.scene.from_s <= time_s <= canvas.scene.to_s:
                canvas.line((LEFT - 6, at), (canvas.width - 8, at), "edge")
        name = top + 15 if end - top > 20 else top - 4
        canvas.text(LEFT - 2, name, fault.label, "fault")
        canvas.places.take(LEFT - 6, name - 13, LEFT + 7.0 * len(fault.label), name + 4)
