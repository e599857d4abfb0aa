"""Draws the path of one event: over a slice through its point, and from host to host over the regions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from analysis.pages.report.formatting import count_of, seconds
from analysis.pages.report.sections import Dot, HostPlaces, Panel, PanelBox, PanelEdge, PanelRow
from analysis.systems.meghdoot.slices import Slice, boxes, through
from analysis.systems.meghdoot.way import EventPath
from analysis.systems.meghdoot.zones import Holding, ZoneHistory
from analysis.timelines.run_metadata import RunMetadata
from node.core.content.content import ContentAttribute
from node.core.epochs import format_seq
from node.protocols.can.zones import Zone

AFFECTED = 0.75  # shade of zones


def way_row(
    way: EventPath,
    zones: ZoneHistory,
    metadata: RunMetadata,
    attributes: Sequence[ContentAttribute],
    where: HostPlaces,
) -> PanelRow:
    """Return both drawings of an event's path."""
    name = metadata.stream_names.get(way.stream, f"stream {way.stream}")
    how = "" if way.is_captured else "; computed from the zones, without packets"
    title = (
        f"Path of event {format_seq(way.seq)} of {name}, {seconds(metadata.seconds(way.t_ns))} ({way.says}):"
        f" {count_of(len(way.zones), 'zone')}, {count_of(len(way.contacted), 'node')} contacted,"
        f" {len(way.got & way.wanted)} of {count_of(len(way.wanted), 'subscriber')} notified{how}"
    )
    panels = [_over_regions(way, where)]
    drawn = through(way.point, [each.zone for each in way.zones], attributes)
    if drawn is not None:
        panels.insert(0, _over_zones(way, drawn, zones, where))
    return PanelRow(title, tuple(panels))


def _over_zones(way: EventPath, drawn: Slice, zones: ZoneHistory, where: HostPlaces) -> Panel:
    held = zones.at(way.t_ns)
    load = dict.fromkeys((each.host for each in way.zones), AFFECTED)
    says = {host: f"{host}{': affected' if host in load else ''}" for host in held}
    edges = tuple(_between(way, drawn))
    met = sum(drawn.meets(each.zone) for each in way.zones)
    title = f"over {count_of(met, 'zone')}: {drawn.names[0]} and {drawn.names[1]}"
    return Panel(
        title,
        title,
        (Dot(*drawn.point(way.point), "var(--ink)", "root", f"the event: {way.says}"),),
        edges,
        drawn.labels,
        (*boxes(drawn, held, where.colours, load, says), _outline(way, drawn)),
    )


def _outline(way: EventPath, drawn: Slice) -> PanelBox:
    region = Zone(way.region.low, way.region.high)
    return replace(drawn.box(region), kind="outline")


def _between(way: EventPath, drawn: Slice) -> Iterator[PanelEdge]:
    """Yield the edges between zones that are both in the slice."""
    met: dict[str, Holding] = {each.host: each for each in way.zones if drawn.meets(each.zone)}
    for sender, taker in way.passed_on:
        if sender in met and taker in met:
            ends = (drawn.point(_part(way, met[each].zone)) for each in (sender, taker))
            (x1, y1), (x2, y2) = ends
            yield PanelEdge(x1, y1, x2, y2, "kept")


def _part(way: EventPath, zone: Zone) -> tuple[float, ...]:
    """Return the middle of the affected part of a zone."""
    low = map(max, zone.low, way.region.low)
    high = map(min, zone.high, way.region.high)
    return tuple((one + other) / 2 for one, other in zip(low, high, strict=True))


def _over_regions(way: EventPath, where: HostPlaces) -> Panel:
    edges = [*_lines(way.passed_on, where, "kept"), *_lines(way.told, where, "told")]
    title = f"from node to node: {count_of(len(way.passed_on), 'hop')}"
    if way.is_captured:
        title += f", {count_of(len(way.told), 'notification')}"
    dots = tuple(Dot(*where.of[host], where.colours[host], *_dot(way, host)) for host in where.of)
    return Panel(title, title, dots, tuple(edges), where.labels)


def _lines(pairs: Sequence[tuple[str, str]], where: HostPlaces, kind: str) -> Iterator[PanelEdge]:
    for one, other in pairs:
        if one in where.of and other in where.of:
            yield PanelEdge(*where.of[one], *where.of[other], kind)


def _dot(way: EventPath, host: str) -> tuple[str, str]:
    states = [
        word
        for word, holds in (
            ("has the event's zone", host == way.root),
            ("contacted", host in way.contacted),
            ("notified", host in way.got),
            ("due, not notified", host in way.wanted - way.got),
            ("not required", host in way.got - way.wanted),
        )
        if holds
    ]
    kinds = ((way.wanted - way.got, "dead"), ({way.root}, "root"), (way.got, "member"),
             (way.contacted, "forwarder"))  # fmt: skip
    kind = next((kind for hosts, kind in kinds if host in hosts), "outside")
    return kind, f"{host}: {', '.join(states) or 'not involved'}"
