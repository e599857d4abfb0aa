"""Drawing of arrows on a diagram: their lines, ends, labels and tooltips."""

from collections.abc import Sequence

from analysis.pages.diagram.canvas import Canvas
from analysis.pages.diagram.label_placer import PlacedLabel, Point
from analysis.pages.diagram.scene import Arrow, Flight
from analysis.pages.report.formatting import number
from analysis.schemas import ARRIVED, LOST
from topologies.drawing.svg import Attributes, element, plain

LOST_AFTER = 0.55  # fraction of its path after which a lost message ends in a cross
MEMBERS_DRAWN = 120  # fine lines within a thick arrow
MEMBERS_OF_PICTURE = 400  # in all thick arrows together; more make a solid block
THICK_MANY, ALL_THICK = 6, 0.3  # if more areas are filled, their total opacity
HEAD, MEMBER_HEAD = 8.0, 5.5  # size of an arrow head in pixels
MEMBER_ROOM = 12.0  # pixels between the ends of two messages in a thick arrow


def draw_arrows(canvas: Canvas) -> None:
    """Draw all arrows, thick ones below. Short runs get their fine lines first, within the limit."""
    lined, room = set(), MEMBERS_OF_PICTURE
    arrows = canvas.scene.arrows
    runs = [index for index, arrow in enumerate(arrows) if len(arrow.flights) > 1]
    for index in sorted(runs, key=lambda each: len(arrows[each].flights)):
        room -= len(_members(arrows[index]))
        if room < 0:
            break
        lined.add(index)
    for index, arrow in sorted(enumerate(arrows), key=lambda each: len(each[1].flights) == 1):
        _draw_arrow(canvas, arrow, lined=index in lined)


def _draw_arrow(canvas: Canvas, arrow: Arrow, *, lined: bool) -> None:
    """Draw an arrow's lines, ends and tooltip. Labels are drawn later, on top of all arrows."""
    colour = canvas.colours[arrow.type]
    under, canvas.parts = canvas.parts, [element("title", {}, plain(_tooltip(arrow)))]
    first, last = _ends(canvas, arrow, arrow.flights[0]), _ends(canvas, arrow, arrow.flights[-1])
    if len(arrow.flights) > 1:
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (first[0], first[1], last[1], last[0]))
        look: Attributes = {"class": "thick", **_fainter(canvas), "fill": colour}
        canvas.parts.append(element("polygon", {"points": corners, **look}))
        shown = _members(arrow) if lined else arrow.flights[-1:]
        _draw_members(canvas, arrow, shown, colour)
        draw_end(canvas, arrow, last, colour)
    canvas.line(*first, style_of("message", arrow), colour)
    draw_end(canvas, arrow, first, colour)
    canvas.parts.append(element("circle", {"cx": first[0][0], "cy": first[0][1], "r": 2.4, "fill": colour}))
    group, canvas.parts = element("g", {}, *canvas.parts), under
    canvas.parts.append(group)


def _fainter(canvas: Canvas) -> dict[str, str]:
    """Return the style that makes thick arrows fainter if many of them may overlap."""
    many = sum(len(arrow.flights) > 1 for arrow in canvas.scene.arrows)
    return {"style": f"fill-opacity: {ALL_THICK / many:.3f}"} if many > THICK_MANY else {}


def _members(arrow: Arrow) -> tuple[Flight, ...]:
    """Return the messages of a run that can have a fine line."""
    return arrow.flights[:: -(-len(arrow.flights) // MEMBERS_DRAWN)]


def _draw_members(canvas: Canvas, arrow: Arrow, shown: Sequence[Flight], colour: str) -> None:
    """Draw a fine line for each message, with a head if there is room for one."""
    canvas.unlined += len(arrow.flights) - len(shown)
    room = _ends(canvas, arrow, arrow.flights[0])[1][1]
    for flight in shown:
        ends = _ends(canvas, arrow, flight)
        canvas.line(*ends, style_of("member", arrow), colour)
        if ends[1][1] - room >= MEMBER_ROOM:
            room = ends[1][1]
            draw_end(canvas, arrow, ends, colour, MEMBER_HEAD)


def style_of(base: str, arrow: Arrow) -> str:
    """Return the classes of a line: its kind and the fate of the message."""
    return base if arrow.fate == ARRIVED else f"{base} {arrow.fate}"


def _ends(canvas: Canvas, arrow: Arrow, flight: Flight) -> tuple[Point, Point]:
    """Return the start and the end of a message's line."""
    a, b = canvas.x_of[arrow.sender], canvas.x_of[arrow.receiver]
    start, end = canvas.y(flight.sent_s), canvas.y(arrow.end_s(flight))
    part = LOST_AFTER if arrow.fate == LOST else 1.0
    return (a, start), (a + (b - a) * part, start + (end - start) * part)


def draw_end(
    canvas: Canvas, arrow: Arrow, ends: tuple[Point, Point], colour: str, head: float = HEAD
) -> None:
    """Draw an arrow head, a cross for a lost message, or a ring if the arrival was not captured."""
    (ax, ay), (bx, by) = ends
    if arrow.fate == LOST:
        size = head * 0.55
        path = f"M{bx - size:.1f} {by - size:.1f}l{2 * size} {2 * size}m0 {-2 * size}l{-2 * size} {2 * size}"
        canvas.parts.append(element("path", {"d": path, "class": "cross", "stroke": colour}))
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
        canvas.parts.append(element("polygon", {"points": points, "fill": colour}))
    else:
        look: Attributes = {"r": 3.5, "class": "message", "stroke": colour}
        canvas.parts.append(element("circle", {"cx": bx, "cy": by, **look}))


def _tooltip(arrow: Arrow) -> str:
    """Return an arrow's description for its tooltip."""
    first, last = arrow.flights[0], arrow.flights[-1]
    route = f"{arrow.label}, {arrow.sender} → {arrow.receiver}"
    sent = f"sent at {first.sent_s:.4f} s"
    if len(arrow.flights) > 1:
        sent = f"sent from {first.sent_s:.4f} s to {last.sent_s:.4f} s"
    fate = arrow.fate
    if first.complete_s is not None:
        fate = f"{'first ' if len(arrow.flights) > 1 else ''}complete at {first.complete_s:.4f} s"
        fate += f" ({(first.complete_s - first.sent_s) * 1000:.1f} ms)"
    again = f", {number(arrow.retransmitted)} retransmitted" if arrow.retransmitted else ""
    return f"{route}, {sent}, {fate}{again}"


def draw_label(canvas: Canvas, arrow: Arrow) -> None:
    """Draw the label where it fits: inside a thick arrow, or at its first or last message."""
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


def _label_text(place: PlacedLabel, text: str) -> str:
    about = f"rotate({place.angle:.1f} {place.x:.1f} {place.y:.1f})"
    turn = {"transform": about} if place.angle else {}
    return element("text", {"x": place.x, "y": place.y, "class": "label", **turn}, plain(text))
