"""A plan as an SVG picture: a map of the regions, the links with their parameters, faults over time.

The picture is self-contained, without scripts or fonts to fetch, and follows the viewer's light or dark
mode. Links that a fault blocks at some time are dashed and carry the fault's name; links whose parameters it
changes carry its name, too.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from experiments.faults.kinds import kind_named
from experiments.faults.links import LinkFault
from experiments.planned.changes import LinkChange, LinkState
from experiments.planned.plan import ChurnPlan, FaultPlan, LinkPlan, Plan
from testbed.campaign.texts.plan_text import link_parameters_text, owned
from topologies.drawing.layout import LabelBox, LabelledLine, beside, layout, layout_in_pixels, place_labels
from topologies.drawing.palette import colour_of
from topologies.drawing.svg import Point, SvgDrawing, document, element

CARD_WIDTH, CARD_HEIGHT = 300.0, 76.0
MARGIN = 40.0
HEADER_HEIGHT = 76.0
GAP = 60.0  # minimum between cards; side by side, labels get additional room
MAP_WIDTH, MAP_HEIGHT = 800.0, 460.0
LANE_HEIGHT = 26.0
MARKS_MAX = 2_000  # of arrivals and departures in a lane
LABEL_HEIGHT = 20.0
CHARACTER_WIDTH = 7.0  # of the labels' font, about
LABELLED_LINKS_MAX = 60

STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --faint: #656d76; }
svg { --line: #8c959f; --edge: #d0d7de; --fault: #b35900; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; }
  svg { --line: #6e7681; --edge: #3d444d; --fault: #f0883e; }
}
text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.title { font-size: 20px; font-weight: 600; }
.faint { fill: var(--faint); }
.region { font-size: 16px; font-weight: 600; }
.paper { fill: var(--paper); }
.card { fill: var(--paper); stroke-width: 2; }
.link { stroke: var(--line); stroke-width: 2; fill: none; }
.failing { stroke: var(--fault); stroke-dasharray: 7 6; stroke-width: 2.5; }
.label { fill: var(--paper); stroke: var(--edge); }
.fault { fill: var(--fault); font-weight: 600; }
.axis { stroke: var(--line); }
.band { fill: var(--line); fill-opacity: 0.3; }
.mark { stroke: var(--fault); stroke-width: 2.5; }
""".strip()


def plan_svg(plan: Plan) -> str:
    """Return the plan as SVG."""
    centres = centres_of(plan)
    right = max(x for x, _ in centres.values()) + CARD_WIDTH / 2
    bottom = max(y for _, y in centres.values()) + CARD_HEIGHT / 2
    width = max(right + MARGIN, MAP_WIDTH)
    canvas = SvgDrawing()
    _draw_heading(canvas, plan)
    _draw_links(canvas, plan, centres, within=(right, bottom))
    _draw_regions(canvas, plan, centres)
    height = _draw_timeline(canvas, plan, top=bottom + MARGIN, width=width) + MARGIN / 2
    return document(canvas.parts, (width, height), title=f"{plan.experiment} as planned", style=STYLE)


def centres_of(plan: Plan) -> dict[str, Point]:
    """Return the centre of each region's card, so that cards do not overlap."""
    names = [region.name for region in plan.regions]
    edges = [(names.index(link.a), names.index(link.b)) for link in plan.links if link.kind == "wan"]
    room = max((_label(plan, link).width for link in plan.links if link.kind == "wan"), default=0.0)
    places = layout_in_pixels(
        layout(len(names), edges),
        apart=(CARD_WIDTH + max(GAP, room + LABEL_HEIGHT), CARD_HEIGHT + GAP),
        size=(MAP_WIDTH, MAP_HEIGHT),
    )
    left, top = MARGIN + CARD_WIDTH / 2, HEADER_HEIGHT + CARD_HEIGHT / 2
    return {name: (left + x, top + y) for name, (x, y) in zip(names, places, strict=True)}


def _draw_heading(canvas: SvgDrawing, plan: Plan) -> None:
    seconds = plan.duration_us / 1e6
    canvas.text(MARGIN, 34, plan.experiment, "title")
    canvas.text(MARGIN, 54, f"{plan.system}, {len(plan.processes)} processes, {seconds:g} s", "faint")


def _draw_links(canvas: SvgDrawing, plan: Plan, centres: dict[str, Point], *, within: Point) -> None:
    links = [link for link in plan.links if link.kind == "wan"]
    failing = _failing(plan)
    ends = beside([(centres[link.a], centres[link.b]) for link in links], LABEL_HEIGHT)
    line_of = {link.name: line for link, line in zip(links, ends, strict=True)}
    for link in links:
        style = "link failing" if link.name in failing else "link"
        canvas.line(*line_of[link.name], style)
    if len(links) > LABELLED_LINKS_MAX:
        links = [link for link in links if link.name in failing or _touched_by(plan, link)]
    labels = [_label(plan, link) for link in links[:LABELLED_LINKS_MAX]]
    lines = [
        LabelledLine(*line_of[link.name][0], *line_of[link.name][1], label.width, LABEL_HEIGHT)
        for link, label in zip(links, labels, strict=False)
    ]
    cards = [LabelBox(*centre, CARD_WIDTH + 8, CARD_HEIGHT + 8) for centre in centres.values()]
    for label, box in zip(labels, place_labels(lines, cards, within), strict=True):
        _draw_label(canvas, label, box)


@dataclass(frozen=True, slots=True)
class _Label:
    """The label of a link: its parameters, and the faults that affect it."""

    text: str
    faults: str

    @property
    def width(self) -> float:
        letters = len(self.text) + (len(self.faults) + 4 if self.faults else 0)
        return CHARACTER_WIDTH * letters + 20


def _label(plan: Plan, link: LinkPlan) -> _Label:
    text = "" if link.name == f"{link.a}-{link.b}" else f"{link.name}: "
    text += link_parameters_text(link.forward)
    if link.backward != link.forward:
        text += f" / {link_parameters_text(link.backward)}"
    return _Label(text, ", ".join(_touched_by(plan, link)))


def _draw_label(canvas: SvgDrawing, label: _Label, box: LabelBox) -> None:
    canvas.box(box, "label", radius=LABEL_HEIGHT / 2)
    if label.faults:
        canvas.text(box.x - box.width / 2 + 10, box.y + 4, f"✕ {label.faults}", "fault")
        canvas.text(box.x + box.width / 2 - 10, box.y + 4, label.text, anchor="end")
    else:
        canvas.text(box.x, box.y + 4, label.text, anchor="middle")


def _draw_regions(canvas: SvgDrawing, plan: Plan, centres: dict[str, Point]) -> None:
    for number, region in enumerate(plan.regions):
        x, y = centres[region.name]
        colour = colour_of(number)
        canvas.box(LabelBox(x, y, CARD_WIDTH, CARD_HEIGHT), "card", radius=12, stroke=colour)
        left = x - CARD_WIDTH / 2 + 16
        canvas.parts.append(element("circle", {"cx": left + 6, "cy": y - 17, "r": "7", "fill": colour}))
        canvas.text(left + 21, y - 12, region.name, "region")
        canvas.text(x + CARD_WIDTH / 2 - 16, y - 12, owned(plan, region.name), "faint", anchor="end")
        canvas.text(left, y + 9, _roles_text(plan, region.name))
        canvas.text(left, y + 26, region.subnet, "faint")


def _roles_text(plan: Plan, region: str) -> str:
    counts = Counter(process.role for process in plan.processes if process.region == region)
    return " · ".join(f"{role} {count}" for role, count in counts.items()) or "no processes"


def _draw_timeline(canvas: SvgDrawing, plan: Plan, *, top: float, width: float) -> float:
    """Draw the time axis with a lane for each fault and each churn group; return the lower edge.

    Each arrival and departure of a churn group has a mark.
    """
    left, right = MARGIN, width - MARGIN
    lanes: tuple[ChurnPlan | FaultPlan, ...] = (*plan.churn, *plan.faults)
    bottom = top + LANE_HEIGHT * max(1, len(lanes)) + 6
    scale = (right - left) / plan.duration_us
    for lane, fault in enumerate(lanes):
        y = top + LANE_HEIGHT * (lane + 0.5)
        x = left + fault.at_us * scale
        if isinstance(fault, ChurnPlan) or issubclass(kind_named(fault.kind), LinkFault):
            end = left + (fault.until_us or plan.duration_us) * scale
            canvas.box(LabelBox((x + end) / 2, y, max(end - x, 2.0), LANE_HEIGHT - 6), "band", radius=3)
        if isinstance(fault, ChurnPlan):
            for change in [change for change in plan.changes if change.fault == fault.name][:MARKS_MAX]:
                at = left + change.at_us * scale
                canvas.line((at, y + LANE_HEIGHT / 4), (at, y + LANE_HEIGHT / 2 - 3), "mark")
        else:
            canvas.line((x, y - LANE_HEIGHT / 2 + 3), (x, bottom), "mark")
        label = f"{fault.name}: {fault.target}" if fault.name != fault.target else fault.name
        room = CHARACTER_WIDTH * len(label) + 8
        anchor, at = ("start", x + 6) if x + room < right else ("end", x - 6)
        canvas.text(at, y + 4, label, anchor=anchor)
    canvas.line((left, bottom), (right, bottom), "axis")
    for second in _ticks(plan.duration_us / 1e6):
        x = left + second * 1e6 * scale
        canvas.line((x, bottom), (x, bottom + 5), "axis")
        canvas.text(x, bottom + 19, f"{second:g}", "faint", anchor="middle")
    canvas.text(right, bottom + 36, "seconds since start", "faint", anchor="end")
    return bottom + 40


def _ticks(duration_s: float) -> Iterator[float]:
    step = next(
        step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 600, 3600, 7200) if duration_s / step <= 13
    )
    for number in range(int(duration_s / step + 1e-9) + 1):
        yield number * step


def _failing(plan: Plan) -> set[str]:
    """Return the links that are blocked at some time."""
    changes = (change for change in plan.changes if isinstance(change, LinkChange))
    return {change.link for change in changes if change.state is not LinkState.UP}


def _touched_by(plan: Plan, link: LinkPlan) -> list[str]:
    """Return the faults that affect this link, without those that only end a fault."""
    kinds = {fault.name: fault.kind for fault in plan.faults}
    names = (
        change.fault for change in plan.changes if isinstance(change, LinkChange) and change.link == link.name
    )
    return [name for name in dict.fromkeys(names) if kinds.get(name) != "restore"]
