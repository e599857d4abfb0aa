"""What stands below a diagram: what colours and signs mean, what was left out, how to draw it again."""

from collections.abc import Sequence

from analysis.diagram.arrow_drawing import draw_end, style_of
from analysis.diagram.canvas import LEFT, Canvas
from analysis.diagram.placing import Point
from analysis.diagram.scene import Arrow, Flight
from analysis.report.formatting import count_of
from analysis.schemas import ARRIVED, LOST, UNSEEN

LEGEND_ROW, NOTE_ROW = 22.0, 17.0


def draw_legend(canvas: Canvas) -> float:
    """Types and signs; returns the height of the last row."""
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
        canvas.parts.append(
            f'<rect x="{x:.1f}" y="{y - 5:.1f}" width="26" height="10" class="thick" fill="{colour}"/>'
        )
    canvas.line((x, y), (x + (20 if fate == LOST else 26), y), style_of("message", sample), colour)
    draw_end(canvas, sample, ((x, y), (x + (20 if fate == LOST else 26), y)), colour)


def draw_notes(canvas: Canvas, y: float) -> float:
    """What is not in the picture, and how to draw it again; returns the picture's lower edge."""
    left_out = list(canvas.scene.left_out)
    if canvas.unlined:
        shorter = "a shorter time shows them"
        left_out.append(f"the lines of {count_of(canvas.unlined, 'message')} within thick arrows ({shorter})")
    if canvas.unlabelled:
        left_out.append(f"{count_of(canvas.unlabelled, 'label')} (point at an arrow to read it)")
    y += 8
    if canvas.scene.bar_ms is not None:
        y += NOTE_ROW
        bar = f"times between machines: ±{canvas.scene.bar_ms:.3f} ms, as their clocks are known"
        canvas.text(LEFT - 6, y, bar, "faint")
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
