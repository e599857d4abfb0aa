"""Formats the path of an event: a table of hops, notes on some, and the last receiver with the reasons.

Times are in seconds since time 0 of the run, durations in milliseconds.
"""

from collections.abc import Iterator
from typing import Any

from analysis.inspect.following.hops import EventHop, route_to
from analysis.inspect.following.story import PathExplanation, regions_of
from analysis.inspect.packets.lines import Paint, plain
from analysis.schemas import LOST
from analysis.timelines.run_metadata import RunMetadata
from experiments.files.sanitize import printable
from node.core.epochs import format_seq

Line = tuple[str, str]
"""A text and its kind; "" if it has no colour."""
_INDENT = 2
_TITLES = ("waited", "resent", "links", "queued", "rest", "total")


def lines(
    story: PathExplanation, metadata: RunMetadata, *, packets: bool = False, style: Paint = plain
) -> Iterator[str]:
    """Yield the lines of the report.

    packets: also list each packet that carried the event, with place and time. style: function from a text
    and its kind ("head", "lost", "again", "last") to the text, perhaps coloured.
    """
    for text, kind in _lines(story, metadata, packets=packets):
        shown = printable(text)
        yield style(shown, kind) if kind else shown


def _lines(story: PathExplanation, metadata: RunMetadata, *, packets: bool) -> Iterator[Line]:
    found = story.found
    owner, name = metadata.owner.get(found.stream), metadata.stream_names.get(found.stream)
    event = f"event {format_seq(found.seq)} of stream {found.stream}"
    whose = f"region {owner}" if name in {None, owner} else f"{name} of region {owner}"
    yield f"{event} ({whose})" if owner else event, "head"
    yield from ((text, "") for text in _publication(story, metadata))
    yield "", ""
    names = max(len(_endpoints(hop)) for hop in story.hops)
    titles = "".join(f"{title:>9}" for title in _TITLES)
    yield f"{'complete':>10}  {'message':<{names}}{titles}  ms", "head"
    for hop in story.hops:
        yield from _hop(hop, names, metadata)
        if hop.copy.fate == LOST:
            ended = _ended(story, hop.copy.sender, hop.copy.receiver, metadata)
            yield from ((_indent(hop) + text, "") for text in ended)
        if packets:
            yield from ((text, "") for text in _packets(hop, metadata))
    yield "", ""
    yield from _end(story, metadata)


def _publication(story: PathExplanation, metadata: RunMetadata) -> Iterator[str]:
    found, publish = story.found, story.found.publish
    if publish is None:
        first = next((hop.copy for hop in story.hops if hop.depth == 0), None)
        if first is not None and first.sender in metadata.publishing_hosts(found.stream) and metadata.by_host:
            yield f"published  {_at(first.sent_ns, metadata)}  by {first.sender}, which sent it on itself"
        else:
            yield "its publication was not captured"
        return
    numbered = "" if found.request is None else f"as request {found.request}, "
    request = f"{numbered}in {publish.type} of {publish.first} to {publish.last}"
    yield f"published  {_at(story.published_ns, metadata)}  by {publish.sender} {request}"
    yield f"numbered   {_at(story.numbered_ns, metadata)}  by {publish.receiver}"
    if found.answered is not None:
        answer = f"to {publish.sender} by {found.answered.sender}"
        yield f"answered   {_at(found.answered.complete_ns, metadata)}  {answer}"


def _at(t_ns: int | None, metadata: RunMetadata) -> str:
    return f"{'?':>8} s" if t_ns is None else f"{metadata.seconds(t_ns):8.3f} s"


def _endpoints(hop: EventHop) -> str:
    copy = hop.copy
    return f"{' ' * _INDENT * hop.depth}{copy.sender} -> {copy.receiver}"


def _hop(hop: EventHop, names: int, metadata: RunMetadata) -> Iterator[Line]:
    copy = hop.copy
    at = _at(copy.complete_ns, metadata) if copy.complete_ns is not None else f"{copy.fate:>10}"
    parts = (hop.waited_ns, hop.resent_ns, hop.link_ns, hop.queued_ns, hop.completing_ns, hop.total_ns)
    text = f"{at}  {_endpoints(hop):<{names}}" + "".join(f"{_ms(part):>9}" for part in parts)
    kind = "lost" if copy.fate == LOST else ("again" if not hop.is_first else "hop")
    yield text.rstrip(), kind
    for note in _notes(hop, metadata):
        yield _indent(hop) + note, ""


def _indent(hop: EventHop) -> str:
    return " " * (12 + _INDENT * (hop.depth + 1))


def _ended(story: PathExplanation, sender: str, receiver: str, metadata: RunMetadata) -> Iterator[str]:
    ending = story.ended.get((sender, receiver))
    if ending is not None:
        at = _at(ending.t_ns, metadata).strip()
        yield f"its connection to {receiver} was ended by {ending.how} of {ending.host} at {at}"


def _ms(value_ns: int | None) -> str:
    return "-" if value_ns is None else f"{value_ns / 1e6:.2f}"


def _notes(hop: EventHop, metadata: RunMetadata) -> Iterator[str]:
    copy = hop.copy
    if copy.is_passing:
        yield f"to be relayed to {copy.target}"
    if metadata.by_host and copy.type in metadata.reading.carries[1:]:
        yield f"as {copy.type}"
    if copy.fate == LOST:
        left = _at(copy.left_ns or copy.sent_ns, metadata).strip()
        yield f"left at {left} and never arrived"
    elif not hop.is_first:
        yield "duplicate: the receiver already had it"
    error_bound_ns = _error_bound_ns(hop, metadata)
    if error_bound_ns is not None and copy.arrived_ns is not None:
        yield f"queued and total ±{error_bound_ns / 1e6:.3f}: two machines' clocks measured them"
    if copy.collected:
        yield "as a tombstone: it was garbage-collected"
    if hop.asked is not None:
        yield f"requested by {hop.asked.type}, received at {_at(hop.asked.complete_ns, metadata).strip()}"
    if hop.sent_again_ns:
        times = ", ".join(_at(t_ns, metadata).strip() for t_ns in hop.sent_again_ns)
        yield f"retransmitted at {times}"


def _error_bound_ns(hop: EventHop, metadata: RunMetadata) -> float | None:
    """Return the error bound of times between sender and receiver; None for one clock."""
    return metadata.clocks.error_bound_ns(hop.copy.sender, hop.copy.receiver, hop.copy.t_ns)


def _packets(hop: EventHop, metadata: RunMetadata) -> Iterator[str]:
    """Yield every packet at every place where it was captured, with the time from the previous place."""
    for number, seen in enumerate(hop.sightings):
        earlier = [one.t_ns for one in hop.sightings[:number] if one.is_before(seen, hop.copy.sender)]
        since = f"  +{(seen.t_ns - earlier[-1]) / 1e6:.3f} ms" if earlier else ""
        span = f"bytes {seen.first}..{seen.last}"
        yield f"{_indent(hop)}{metadata.seconds(seen.t_ns):.6f} s  {seen.place.name}  {span}{since}"


def _end(story: PathExplanation, metadata: RunMetadata) -> Iterator[Line]:
    last = story.last
    if last is None:
        yield "no client received it", "lost"
    else:
        way = route_to(last.copy.receiver, story.hops)
        took = (last.copy.complete_ns or 0) - way[0].copy.t_ns
        route = " -> ".join(regions_of(way, metadata))
        at = _at(last.copy.complete_ns, metadata).strip()
        after = f"{took / 1e6:.2f} ms after it left {way[0].copy.sender}"
        yield f"last: {last.copy.receiver} at {at}, {after}", "last"
        yield f"  path: {route}", ""
        if story.detour:
            yield f"  {story.detour}", ""
        for reason in story.reasons:
            yield f"  {reason.took_ns / 1e6:9.2f} ms  {reason.text}", ""
        rest_ns = took - sum(reason.took_ns for reason in story.reasons)
        yield f"  {rest_ns / 1e6:9.2f} ms  other, smaller parts", ""
    if story.clients is not None:
        named = ", ".join(sorted(story.clients)) or "no client"
        yield f"expected by {named}", ""
    if story.missing:
        yield f"never seen at {', '.join(story.missing)}", "lost"
    for hop in story.kept:
        server = hop.copy.receiver
        yield f"last at {server} at {_at(hop.copy.complete_ns, metadata).strip()}, never sent on", "lost"
        for client in story.missing:
            yield from ((f"  {text}", "") for text in _ended(story, server, client, metadata))


def to_json(story: PathExplanation, metadata: RunMetadata) -> dict[str, Any]:
    """Return the story as plain data; times in seconds since time 0, durations in milliseconds."""
    last = story.last
    return {
        "stream": story.found.stream,
        "seq": story.found.seq,
        "request": story.found.request,
        "published_s": _seconds(story.published_ns, metadata),
        "numbered_s": _seconds(story.numbered_ns, metadata),
        "hops": [_hop_json(hop, metadata) for hop in story.hops],
        "last": last.copy.receiver if last else None,
        "detour": story.detour,
        "reasons": [{"took_ms": reason.took_ns / 1e6, "text": reason.text} for reason in story.reasons],
        "missing": list(story.missing),
        "kept": [hop.copy.receiver for hop in story.kept],
        "ended": [
            {"from": sender, "to": receiver, "how": ending.how, "by": ending.host}
            | {"s": _seconds(ending.t_ns, metadata)}
            for (sender, receiver), ending in story.ended.items()
        ],
        "clients": None if story.clients is None else sorted(story.clients),
    }


def _hop_json(hop: EventHop, metadata: RunMetadata) -> dict[str, Any]:
    copy = hop.copy
    times = {
        name: _seconds(value, metadata)
        for name, value in (
            ("had_s", hop.had_ns), ("sent_s", copy.sent_ns), ("left_s", copy.left_ns),
            ("arrived_s", copy.arrived_ns), ("complete_s", copy.complete_ns),
        )
    }  # fmt: skip
    durations = {
        name: None if value is None else value / 1e6
        for name, value in (
            ("waited_ms", hop.waited_ns), ("resent_ms", hop.resent_ns), ("links_ms", hop.link_ns),
            ("queued_ms", hop.queued_ns), ("rest_ms", hop.completing_ns),
        )
    }  # fmt: skip
    return {
        "type": copy.type,
        "from": copy.sender,
        "to": copy.receiver,
        "depth": hop.depth,
        "first": hop.is_first,
        "fate": copy.fate,
        **times,
        **durations,
        "error_ms": None
        if (error_bound_ns := _error_bound_ns(hop, metadata)) is None
        else error_bound_ns / 1e6,
        "sent_again_s": [metadata.seconds(t_ns) for t_ns in hop.sent_again_ns],
        "asked": hop.asked.type if hop.asked else None,
        "packets": [
            {
                "place": seen.place.name,
                "s": metadata.seconds(seen.t_ns),
                "first": seen.first,
                "last": seen.last,
            }
            for seen in hop.sightings
        ],
    }


def _seconds(t_ns: int | None, metadata: RunMetadata) -> float | None:
    return None if t_ns is None else metadata.seconds(t_ns)
