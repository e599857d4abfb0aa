"""Where regions and links stand in a drawing of the topology, as plain data for the page and for the
figures.

Four regions stand in a square in the order of the Sprinkler paper's figure 8 (0 above 1 on the left, 2 above
3 on the right); other numbers of regions on a circle. Coordinates run from 0 to 1, y downwards. A link that
crosses others has its label nearer to its first end, so that labels do not meet in the middle.
"""

import math
from dataclasses import dataclass

from analysis.report.bands import Band, bands
from analysis.report.formatting import EN_DASH, count_of, percent, scaled, seconds, with_unit
from analysis.report.reading import Row, RunRecord
from topologies.palette import colour_of

_SQUARE = ((0.16, 0.17), (0.16, 0.83), (0.84, 0.17), (0.84, 0.83))
_CIRCLE_RADIUS = 0.37
LABELS_UP_TO = 24  # more links than this are drawn without their figures


SHOWN_ROLES = ("proxy", "driver", "client")


@dataclass(frozen=True, slots=True)
class DrawnRegion:
    """A region's place."""

    name: str
    colour: str
    x: float
    y: float
    inside: str  # "1 proxy, 1 driver, 2 clients"


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A link's ends, the place of its label, and whether a fault touched it."""

    name: str
    x1: float
    y1: float
    x2: float
    y2: float
    label_x: float
    label_y: float
    label: str
    disturbed: str  # "cut 19.00-41.00 s", or "" if nothing happened to it


@dataclass(frozen=True, slots=True)
class Drawing:
    """A whole topology."""

    regions: tuple[DrawnRegion, ...]
    links: tuple[DrawnLink, ...]


def drawing(record: RunRecord) -> Drawing:
    """The topology of this run; links on which a fault acted are marked with it."""
    places = _places(record.regions)
    found = bands(record)
    regions = tuple(
        DrawnRegion(name, colour_of(index), *places[name], _inside(record, name))
        for index, name in enumerate(record.regions)
    )
    labelled = len(record.wan_links) <= LABELS_UP_TO
    links = tuple(_link(link, places, found, labelled=labelled) for link in record.wan_links)
    return Drawing(regions, links)


def _places(names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    if len(names) == len(_SQUARE):
        return dict(zip(names, _SQUARE, strict=True))
    step = 2 * math.pi / max(1, len(names))
    start = math.pi if len(names) == 2 else -math.pi / 2  # two side by side, otherwise the first on top
    return {
        name: (
            0.5 + _CIRCLE_RADIUS * math.cos(start + i * step),
            0.5 + _CIRCLE_RADIUS * math.sin(start + i * step),
        )
        for i, name in enumerate(names)
    }


def _link(
    link: Row, places: dict[str, tuple[float, float]], found: tuple[Band, ...], *, labelled: bool
) -> DrawnLink:
    (x1, y1), (x2, y2) = places[link["a"]], places[link["b"]]
    towards = 0.5 if not _crosses_middle(x1, y1, x2, y2) else 0.3
    return DrawnLink(
        name=link["name"],
        x1=x1,
        y1=y1,
        x2=x2,
        y2=y2,
        label_x=x1 + (x2 - x1) * towards,
        label_y=y1 + (y2 - y1) * towards,
        label=_label(link) if labelled else "",
        disturbed="; ".join(_disturbance(band) for band in found if link["name"] in band.links),
    )


def _crosses_middle(x1: float, y1: float, x2: float, y2: float) -> bool:
    return math.hypot((x1 + x2) / 2 - 0.5, (y1 + y2) / 2 - 0.5) < 0.2


def _label(link: Row) -> str:
    """Delays and the larger loss of both directions; the rate of links stands in the tables."""
    forward, backward = link["forward"], link["backward"]
    delays = sorted({forward["delay_us"] / 1000, backward["delay_us"] / 1000})
    text = "/".join(with_unit(delay, "ms") for delay in delays)
    loss = max(each.get("loss") or 0.0 for each in (forward, backward))
    return text + (f", {percent(loss)} loss" if loss else "")


def _disturbance(band: Band) -> str:
    until = "to the end" if band.end_s is None else f"{EN_DASH} {seconds(band.end_s)}"
    return f"{band.fault} {seconds(band.start_s)} {until}"


def _inside(record: RunRecord, region: str) -> str:
    """How many proxies, drivers and clients there are in a region; there is no room for more."""
    counts: dict[str, int] = {}
    for process in record.plan.get("processes", ()):
        if process["region"] == region and process["role"] in SHOWN_ROLES:
            counts[process["role"]] = counts.get(process["role"], 0) + 1
    return ", ".join(count_of(count, role) for role, count in counts.items())


def rates(record: RunRecord) -> str:
    """The rate that all WAN links share, or that they differ."""
    found = {link[d].get("rate_bits_per_s") for link in record.wan_links for d in ("forward", "backward")}
    if len(found) != 1:
        return "links differ in rate"
    rate = found.pop()
    return "links without a rate limit" if rate is None else f"every link {scaled(rate, 'bit/s')}"
