"""The topology as plain data, for the page and for the figures: regions, links, their labels.

`topologies.drawing.layout` places regions and labels. Coordinates are pixels of a drawing of `WIDTH` by
`HEIGHT`, y downwards. A link affected by a fault has the fault and its time under its delay.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.pages.report.charts.bands import FaultPeriod, bands
from analysis.pages.report.formatting import EN_DASH, count_of, number, percent, scaled, seconds, with_unit
from analysis.pages.report.run_reader import AnalysedRun
from experiments.declared import Trait
from experiments.planned.plan import LinkPlan
from topologies.drawing.layout import LabelBox, LabelledLine, Place, beside, layout, place_labels
from topologies.drawing.palette import LIGHT, colour_of

WIDTH, HEIGHT = 560.0, 400.0
ASIDE, ABOVE = 72.0, 52.0
"""Margins around the regions' centres."""
LABELS_UP_TO = 24  # with more links, labels are omitted
NAME_LENGTH = 14
RADIUS, LETTER, LINE_HEIGHT = 24.0, 9.2, 19.0
"""Sizes of a region and of text, as wide as on a phone."""
SHOWN = (Trait.SERVER, Trait.PUBLISHER, Trait.SUBSCRIBER)
NOWHERE = LabelBox(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class DrawnRegion:
    """The position of a region."""

    name: str
    colour: str
    x: float
    y: float
    half: float  # half of its width
    inside: str  # "1 proxy, 1 driver, 2 clients", or "" if all regions have the same

    @property
    def has_dark_letters(self) -> bool:
        """Whether dark letters are more readable on its colour."""
        return self.colour in LIGHT


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A link's ends, its label, and whether a fault affected it."""

    name: str
    x1: float
    y1: float
    x2: float
    y2: float
    lines: tuple[str, ...]  # its configuration
    marks: tuple[str, ...]  # faults on it, abbreviated
    disturbed: str  # "cut 19.00 s - 41.00 s", or "" without faults
    label: LabelBox = NOWHERE


@dataclass(frozen=True, slots=True)
class TopologyDrawing:
    """A whole topology."""

    regions: tuple[DrawnRegion, ...]
    links: tuple[DrawnLink, ...]
    inside: str  # contents of every region, if all are equal
    width: float = WIDTH
    height: float = HEIGHT


def drawing(record: AnalysedRun) -> TopologyDrawing:
    """Return the topology of this run; links are marked with the faults that affected them."""
    regions, inside = _regions(record)
    return TopologyDrawing(regions, _links(record, regions), inside)


def _regions(record: AnalysedRun) -> tuple[tuple[DrawnRegion, ...], str]:
    names = record.regions
    edges = [(names.index(link.a), names.index(link.b)) for link in record.wan_links]
    inside = [_inside(record, name) for name in names]
    shared = inside[0] if len(set(inside)) == 1 else ""
    regions = tuple(
        DrawnRegion(
            name=name,
            colour=colour_of(index),
            x=round(ASIDE + x * (WIDTH - 2 * ASIDE), 1),
            y=round(ABOVE + y * (HEIGHT - 2 * ABOVE), 1),
            half=max(RADIUS, round(len(name) * LETTER / 2 + 8, 1)),
            inside="" if shared else inside[index],
        )
        for index, (name, (x, y)) in enumerate(zip(names, layout(len(names), edges), strict=True))
    )
    return regions, shared


def _links(record: AnalysedRun, regions: Sequence[DrawnRegion]) -> tuple[DrawnLink, ...]:
    at, found = {region.name: (region.x, region.y) for region in regions}, bands(record)
    labelled = len(record.wan_links) <= LABELS_UP_TO
    lines = beside([(at[link.a], at[link.b]) for link in record.wan_links], LINE_HEIGHT)
    bare = [
        _link(link, line, found, labelled=labelled)
        for link, line in zip(record.wan_links, lines, strict=True)
    ]
    taken = [LabelBox(region.x, region.y, 2 * region.half, 2 * RADIUS) for region in regions]
    taken += [
        LabelBox(region.x, region.y + inside_at(region), len(region.inside) * LETTER, LINE_HEIGHT)
        for region in regions
        if region.inside
    ]
    boxes = place_labels([_line(link) for link in bare], taken, (WIDTH, HEIGHT))
    return tuple(replace(link, label=box) for link, box in zip(bare, boxes, strict=True))


def _link(
    link: LinkPlan, line: tuple[Place, Place], found: Sequence[FaultPeriod], *, labelled: bool
) -> DrawnLink:
    """Return a link without a label position."""
    (x1, y1), (x2, y2) = line
    acted = [band for band in found if link.name in band.links]
    return DrawnLink(
        name=link.name,
        x1=round(x1, 1),
        y1=round(y1, 1),
        x2=round(x2, 1),
        y2=round(y2, 1),
        lines=_configuration(link) if labelled else (),
        marks=_marks(acted),
        disturbed="; ".join(map(_disturbance, acted)),
    )


def _line(link: DrawnLink) -> LabelledLine:
    """Return a link's line and label size for the placement of labels."""
    written = [*link.lines, *link.marks]
    width = max(map(len, written), default=0) * LETTER
    return LabelledLine(link.x1, link.y1, link.x2, link.y2, width, len(written) * LINE_HEIGHT)


def inside_at(region: DrawnRegion) -> float:
    """Return the offset of a region's contents from its centre: above it in the upper half."""
    return -RADIUS - LINE_HEIGHT / 2 if region.y < HEIGHT / 2 else RADIUS + LINE_HEIGHT / 2


def _configuration(link: LinkPlan) -> tuple[str, ...]:
    """Return the delays of both directions and the larger loss; tables have the rate."""
    there, back = link.forward.delay_us / 1000, link.backward.delay_us / 1000
    delay = with_unit(there, "ms") if there == back else f"{number(there)}/{with_unit(back, 'ms')}"
    loss = max(link.forward.loss, link.backward.loss)
    name = (link.given_name,) if link.given_name else ()
    return (*name, delay, f"{percent(loss)} loss") if loss else (*name, delay)


def _marks(acted: Sequence[FaultPeriod]) -> tuple[str, ...]:
    """Return the faults and their period, in as few letters as fit on a link."""
    if not acted:
        return ()
    faults = list(dict.fromkeys(band.fault for band in acted))
    name = faults[0] if len(faults) == 1 else count_of(len(faults), "fault")
    shown = name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
    start_s, ends_s = acted[0].start_s, [band.end_s for band in acted if band.end_s is not None]
    when = (
        f"{start_s:.1f}{EN_DASH}{max(ends_s):.1f}\u00a0s"
        if len(ends_s) == len(acted)
        else f"from {start_s:.1f}\u00a0s"
    )
    return f"✕ {shown}", when


def _disturbance(band: FaultPeriod) -> str:
    until = "to the end" if band.end_s is None else f"{EN_DASH} {seconds(band.end_s)}"
    return f"{band.fault} {seconds(band.start_s)} {until}"


def _inside(record: AnalysedRun, region: str) -> str:
    """Return the numbers of servers, publishers and subscribers in a region; there is no room for more."""
    counts: dict[str, int] = {}
    for process in record.plan.having(*SHOWN):
        if process.region == region:
            counts[process.role] = counts.get(process.role, 0) + 1
    return ", ".join(count_of(count, role) for role, count in counts.items())


def rates(record: AnalysedRun) -> str:
    """Return the rate that all WAN links share, or that they differ."""
    found = {shape.rate_bits_per_s for link in record.wan_links for shape in (link.forward, link.backward)}
    if len(found) != 1:
        return "links differ in rate"
    rate = found.pop()
    return "links without a rate limit" if rate is None else f"every link {scaled(rate, 'bit/s')}"
