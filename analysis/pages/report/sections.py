"""Sections that a system adds to its runs' reports: text, drawings over the regions, tables, as plain data.

A function builds them from a run: `analysis.systems.catalog` has those of Cutset's systems; others declare it
(`node.core.declaration.System.report`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.tables import PageTable
from experiments.records.rundir import RunDirectory
from topologies.drawing.layout import layout
from topologies.drawing.palette import colour_of

WIDTH, HEIGHT = 320.0, 250.0
_ASIDE, _ABOVE, _RING = 66.0, 58.0, 44.0
"""Margins around regions' centres, and the distance of hosts from them."""
_LABEL = 4.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A host. kind: "root", "member", "forwarder", "outside" or "dead"."""

    x: float
    y: float
    colour: str
    kind: str
    says: str


@dataclass(frozen=True, slots=True)
class PanelEdge:
    """A line between two hosts.

    kind: "kept", "new" since the previous drawing, or "relayed" by a third host.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str


@dataclass(frozen=True, slots=True)
class RegionLabel:
    """A region's name at its centre."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing of a row."""

    title: str
    says: str
    dots: tuple[Dot, ...]
    edges: tuple[PanelEdge, ...]
    labels: tuple[RegionLabel, ...]


@dataclass(frozen=True, slots=True)
class PanelRow:
    """Drawings side by side, under a title."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Captioned:
    """A table with its caption."""

    caption: str
    table: PageTable


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the page. hint: how to read the drawings."""

    key: str
    title: str
    words: tuple[str, ...] = ()
    rows: tuple[PanelRow, ...] = ()
    hint: str = ""
    tables: tuple[Captioned, ...] = ()


Report = Callable[[AnalysedRun, RunDirectory], Sequence[ReportSection]]


@dataclass(frozen=True, slots=True)
class HostPlaces:
    """Positions of hosts in every panel: in a ring around the centre of their region."""

    of: Mapping[str, tuple[float, float]]
    colours: Mapping[str, str]
    labels: tuple[RegionLabel, ...]


def places(record: AnalysedRun, hosts: Mapping[str, Sequence[str]]) -> HostPlaces:
    """Return the positions of the hosts to draw. hosts: by region."""
    names = record.regions
    links = [(names.index(link.a), names.index(link.b)) for link in record.wan_links]
    middles = [
        (_ASIDE + x * (WIDTH - 2 * _ASIDE), _ABOVE + y * (HEIGHT - 2 * _ABOVE))
        for x, y in layout(len(names), links)
    ]
    of, colours = {}, {}
    for number, (name, (x, y)) in enumerate(zip(names, middles, strict=True)):
        region_hosts = hosts.get(name, ())
        for place, host in enumerate(region_hosts):
            angle = 2 * pi * place / len(region_hosts) - pi / 2
            of[host] = round(x + _RING * cos(angle), 1), round(y + _RING * sin(angle), 1)
            colours[host] = colour_of(number)
    labels = tuple(
        RegionLabel(round(x, 1), round(y + _LABEL, 1), name)
        for name, (x, y) in zip(names, middles, strict=True)
    )
    return HostPlaces(of, colours, labels)
