"""A scene as SVG: lifelines from top to bottom, time downwards, messages as slanted arrows.

A message runs from where it was sent to where it was whole; one that was lost ends in a cross on the way, one
that nobody could have seen arrive in a ring. A run of messages is one thick arrow: the area between its first
message and its last, with a fine line for each. What has no room for a label keeps it as a tooltip.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby

from analysis.diagram.looks import STYLE, colours
from analysis.diagram.placing import Label, Places, Point
from analysis.diagram.ranks import rank
from analysis.diagram.scene import ARRIVED, LOST, Arrow, Flight, Scene
from analysis.report.formatting import EN_DASH, count_of, number

LEFT, RIGHT = 66.0, 30.0
TOP = 118.0  # title and the lifelines' heads
LEGEND_ROW, NOTE_ROW = 22.0, 17.0
WIDTH_MIN = 640.0
APART_MIN, APART_MAX = 124.0, 250.0  # lifelines
WIDTH_WANTED = 1100.0
HEIGHT_MIN, HEIGHT_MAX = 420.0, 1300.0
HEIGHT_OF_ARROW, HEIGHT_OF_SECOND = 19.0, 430.0
LOST_AFTER = 0.55  # of its way a message that was lost ends in a cross
MEMBERS_DRAWN = 120  # fine lines within a thick arrow
THICK_MANY = 6
HEAD, MEMBER_HEAD = 8.0, 5.5  # an arrow's, in pixels
MEMBER_ROOM = 12.0  # between the ends of two messages in a thick arrow


@dataclass(slots=True)
class _Canvas:
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

    @property
    def bottom(self) -> float:
        return TOP + self.height

    def y(self, time_s: float) -> float:
        """Where a time is, also outside the picture."""
        return TOP + (time_s - self.scene.from_s) / (self.scene.to_s - self.scene.from_s) * self.height

    @property
    def thick(self) -> str:
        """How the area of a thick arrow is filled: fainter where many would cover each other."""
        many = sum(len(arrow.flights) > 1 for arrow in self.scene.arrows) > THICK_MANY
        return "thick faint-area" if many else "thick"

    def line(self, a: Point, b: Point, style: str, stroke: str = "") -> None:
        """A straight line."""
        colour = f' stroke="{stroke}"' if stroke else ""
        ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
        self.parts.append(f'<line {ends} class="{style}"{colour}/>')

    def text(self, x: float, y: float, content: str, style: str = "", anchor: str = "start") -> None:
        """A line of text with its baseline at y."""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self.parts.append(f'<text {place} class="{style}">{escape(content)}</text>')


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG document of its own, and the size in pixels at which it is meant to be seen."""

    svg: str
    width: int
    height: int


def diagram_svg(scene: Scene) -> Picture:
    """Draw it."""
    canvas = _canvas(scene)
    _draw_heading(canvas)
    _draw_time(canvas)
    _draw_disturbances(canvas)
    _draw_lifelines(canvas)
    canvas.parts.append('<g clip-path="url(#area)">')
    for arrow in sorted(scene.arrows, key=lambda each: len(each.flights) == 1):  # thick ones below
        _draw_arrow(canvas, arrow)
    canvas.parts.append("</g>")
    for arrow in sorted(scene.arrows, key=lambda each: (-rank(each.type), each.fate == ARRIVED, each.sent_s)):
        _label(canvas, arrow)
    height = _draw_notes(canvas, _draw_legend(canvas))
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


def _canvas(scene: Scene) -> _Canvas:
    gaps = max(1, len(scene.lifelines) - 1)
    apart = min(max((WIDTH_WANTED - LEFT - RIGHT) / (gaps + 1), APART_MIN), APART_MAX)
    needed = LEFT + RIGHT + apart * (gaps + 1)
    width = max(needed, WIDTH_MIN)
    start = LEFT + (width - LEFT - RIGHT - apart * gaps) / 2
    wanted = max(160 + HEIGHT_OF_ARROW * len(scene.arrows), HEIGHT_OF_SECOND * (scene.to_s - scene.from_s))
    height = min(max(HEIGHT_MIN, wanted), HEIGHT_MAX)
    canvas = _Canvas(
        scene,
        {line.host: start + apart * number for number, line in enumerate(scene.lifelines)},
        height,
        width,
        colours(arrow.type for arrow in scene.arrows),
        Places(LEFT, TOP, width - 4, TOP + height),
    )
    for x in canvas.x_of.values():
        canvas.places.take(x - 1, TOP, x + 1, TOP + height)
    return canvas


def _draw_heading(canvas: _Canvas) -> None:
    scene = canvas.scene
    canvas.text(LEFT - 46, 30, scene.title, "title")
    when = f"{scene.from_s:.2f}{EN_DASH}{scene.to_s:.2f} s since start, time runs downwards"
    canvas.text(LEFT - 46, 50, f"{when}; {count_of(scene.messages, 'message')}", "faint")


def _draw_lifelines(canvas: _Canvas) -> None:
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


def _draw_time(canvas: _Canvas) -> None:
    for tick in _ticks(canvas.scene.from_s, canvas.scene.to_s):
        y = canvas.y(tick)
        canvas.line((LEFT - 6, y), (canvas.width - 8, y), "grid")
        canvas.text(LEFT - 12, y + 4, f"{tick:.6f}".rstrip("0").rstrip(".") + " s", "faint", "end")


def _ticks(from_s: float, to_s: float) -> Iterator[float]:
    steps = (n * 10.0**power for power in range(-6, 5) for n in (1, 2, 5))
    step = next(step for step in steps if (to_s - from_s) / step <= 14)
    first = int(from_s / step) - 1
    for count in range(first, first + 20):
        if from_s - 1e-9 <= count * step <= to_s + 1e-9:
            yield count * step


def _draw_disturbances(canvas: _Canvas) -> None:
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


def _draw_arrow(canvas: _Canvas, arrow: Arrow) -> None:
    colour = canvas.colours[arrow.type]
    canvas.parts.append(f"<g><title>{escape(_told(arrow))}</title>")
    first, last = _ends(canvas, arrow, arrow.flights[0]), _ends(canvas, arrow, arrow.flights[-1])
    if len(arrow.flights) > 1:
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (first[0], first[1], last[1], last[0]))
        canvas.parts.append(f'<polygon points="{corners}" class="{canvas.thick}" fill="{colour}"/>')
        _draw_members(canvas, arrow, colour)
        _draw_end(canvas, arrow, last, colour)
    canvas.line(*first, _style("message", arrow), colour)
    _draw_end(canvas, arrow, first, colour)
    canvas.parts.append(
        f'<circle cx="{first[0][0]:.1f}" cy="{first[0][1]:.1f}" r="2.4" fill="{colour}"/></g>'
    )


def _draw_members(canvas: _Canvas, arrow: Arrow, colour: str) -> None:
    """A fine line for each message, with an end where there is room for one."""
    every, room = max(1, len(arrow.flights) // MEMBERS_DRAWN), _ends(canvas, arrow, arrow.flights[0])[1][1]
    for flight in arrow.flights[::every]:
        ends = _ends(canvas, arrow, flight)
        canvas.line(*ends, _style("member", arrow), colour)
        if ends[1][1] - room >= MEMBER_ROOM:
            room = ends[1][1]
            _draw_end(canvas, arrow, ends, colour, MEMBER_HEAD)


def _style(base: str, arrow: Arrow) -> str:
    return base if arrow.fate == ARRIVED else f"{base} {arrow.fate}"


def _ends(canvas: _Canvas, arrow: Arrow, flight: Flight) -> tuple[Point, Point]:
    """Where a message's line starts and ends."""
    a, b = canvas.x_of[arrow.sender], canvas.x_of[arrow.receiver]
    start, end = canvas.y(flight.sent_s), canvas.y(arrow.end_s(flight))
    part = LOST_AFTER if arrow.fate == LOST else 1.0
    return (a, start), (a + (b - a) * part, start + (end - start) * part)


def _draw_end(
    canvas: _Canvas, arrow: Arrow, ends: tuple[Point, Point], colour: str, head: float = HEAD
) -> None:
    (ax, ay), (bx, by) = ends
    if arrow.fate == LOST:
        size = head * 0.55
        path = f"M{bx - size:.1f} {by - size:.1f}l{2 * size} {2 * size}m0 {-2 * size}l{-2 * size} {2 * size}"
        canvas.parts.append(f'<path d="{path}" class="cross" stroke="{colour}"/>')
    elif arrow.fate == ARRIVED:
        length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5 or 1.0
        ux, uy = (bx - ax) / length, (by - ay) / length
        base, half = (bx - ux * head, by - uy * head), head * 0.42
        corners = (
            (bx, by),
            (base[0] - uy * half, base[1] + ux * half),
            (base[0] + uy * half, base[1] - ux * half),
        )
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        canvas.parts.append(f'<polygon points="{points}" fill="{colour}"/>')
    else:
        canvas.parts.append(
            f'<circle cx="{bx:.1f}" cy="{by:.1f}" r="3.5" class="message" stroke="{colour}"/>'
        )


def _told(arrow: Arrow) -> str:
    """An arrow in words, for its tooltip."""
    first, last = arrow.flights[0], arrow.flights[-1]
    way = f"{arrow.label}, {arrow.sender} → {arrow.receiver}"
    sent = f"sent at {first.sent_s:.4f} s"
    if len(arrow.flights) > 1:
        sent = f"sent from {first.sent_s:.4f} s to {last.sent_s:.4f} s"
    fate = arrow.fate
    if first.complete_s is not None:
        fate = f"{'first ' if len(arrow.flights) > 1 else ''}whole at {first.complete_s:.4f} s"
        fate += f" ({(first.complete_s - first.sent_s) * 1000:.1f} ms)"
    again = f", {number(arrow.retransmitted)} retransmitted" if arrow.retransmitted else ""
    return f"{way}, {sent}, {fate}{again}"


def _label(canvas: _Canvas, arrow: Arrow) -> None:
    """The label where it fits: for a thick arrow within it, or at its first message."""
    first, last = _ends(canvas, arrow, arrow.flights[0]), _ends(canvas, arrow, arrow.flights[-1])
    middle = tuple(((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in zip(first, last, strict=True))
    lines = (
        [(first, 5.0), (last, 5.0)]
        if len(arrow.flights) == 1
        else [(middle, -6.0), (first, 5.0), (last, 5.0)]
    )
    shown = arrow.label + (" ↻" if arrow.retransmitted else "")
    place = None
    for (a, b), away in lines:
        place = place or canvas.places.along(a, b, shown, away=away)
    if place is None:
        canvas.unlabelled += 1
        return
    canvas.labels.append(_label_text(place, shown))


def _label_text(place: Label, text: str) -> str:
    turn = f' transform="rotate({place.angle:.1f} {place.x:.1f} {place.y:.1f})"' if place.angle else ""
    return f'<text x="{place.x:.1f}" y="{place.y:.1f}" class="label"{turn}>{escape(text)}</text>'


def _draw_legend(canvas: _Canvas) -> float:
    """Types and signs; returns the height of the last row."""
    x, y = LEFT - 6, canvas.bottom + 34
    entries = [(name, colour, name) for name, colour in canvas.colours.items()]
    signs = [("lost", LOST), ("receiver not captured", "unseen")]
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


def _draw_sign(canvas: _Canvas, kind: str, colour: str, at: Point) -> None:
    x, y = at
    fate = kind if kind in (LOST, "unseen") else ARRIVED
    sample = Arrow(kind, "", "", fate, "", (Flight(0.0, None),), 0.0)
    if kind == "thick":
        canvas.parts.append(
            f'<rect x="{x:.1f}" y="{y - 5:.1f}" width="26" height="10" class="thick" fill="{colour}"/>'
        )
    canvas.line((x, y), (x + (20 if fate == LOST else 26), y), _style("message", sample), colour)
    _draw_end(canvas, sample, ((x, y), (x + (20 if fate == LOST else 26), y)), colour)


def _draw_notes(canvas: _Canvas, y: float) -> float:
    """What is not in the picture, and how to draw it again; returns the picture's lower edge."""
    left_out = list(canvas.scene.left_out)
    if canvas.unlabelled:
        left_out.append(f"{count_of(canvas.unlabelled, 'label')} (point at an arrow to read it)")
    y += 8
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
