"""Finds the messages that carried one event in the table of transfers: its publication and all batches.

A publisher may learn an event's sequence number only from PUBLISHED; the request number links that answer to
the PUBLISH. A restarted publisher numbers its requests from 1 again. Therefore the PUBLISH is the first one
that reached a server, of those that the publisher sent between this answer and its previous answer with the
same request number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from analysis.capture.time_range import TimeRange
from analysis.errors import AnalysisError
from analysis.jobs import transfers
from analysis.messages.label import address_text
from analysis.schemas import ENDS_COLUMNS
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.rundir import RunDirectory
from node.core.declaration import Reading
from node.core.epochs import format_seq

_COLUMNS = (
    "sender", "receiver", "src", "sport", "dst", "dport", "stream_offset", "length", "t_ns", "t_sent_ns",
    "t_left_ns", "t_arrived_ns", "t_complete_ns", "fate", "type", "stream", "kind", "first_seq", "count",
    "covered", "request", "retransmitted", "source", "target",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EventCopy:
    """A message that contains the event, from one host to another. Times are ns, as in TRANSFERS."""

    type: str
    sender: str
    receiver: str
    row: Mapping[str, Any]  # row of TRANSFERS
    first: int  # sequence number of its first event; for PUBLISH the request number
    last: int
    t_ns: int  # when it was first seen
    sent_ns: int | None
    left_ns: int | None
    arrived_ns: int | None
    complete_ns: int | None
    fate: str
    collected: bool  # sent as a tombstone
    source: str | None = None  # originating and destination host, if others relay it
    target: str | None = None

    @property
    def came_to(self) -> tuple[str, ...]:
        """The place of the event after this copy: its receiver, or a relay on the route."""
        return self._place(self.receiver, self.target)

    @property
    def came_from(self) -> tuple[str, ...]:
        """The place of the event before this copy, likewise."""
        return self._place(self.sender, self.source)

    @property
    def is_passing(self) -> bool:
        """Whether its receiver has to relay it to another host."""
        return self.target not in {None, self.receiver}

    def _place(self, host: str, end: str | None) -> tuple[str, ...]:
        between = self.source is not None and self.target is not None and end not in {None, host}
        return (host, str(self.source), str(self.target)) if between else (host,)


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A receiver's request to a sender for a stream."""

    type: str
    sender: str  # sender of the request
    receiver: str
    complete_ns: int


@dataclass(frozen=True, slots=True)
class EventTrace:
    """All captured messages that concern one event."""

    stream: int
    seq: int
    request: int | None  # the publisher's request number
    publish: EventCopy | None
    repeated: tuple[EventCopy, ...]  # other PUBLISH messages with the event
    answered: EventCopy | None  # the first PUBLISHED that reached the publisher
    copies: tuple[EventCopy, ...]  # in order of time
    asked: tuple[StreamRequest, ...]


def find(run: RunDirectory, stream: int, seq: int, metadata: RunMetadata) -> EventTrace:
    """Find the messages of one event.

    Raises AnalysisError, with the events that exist, if no message has it.
    """
    reading = metadata.reading
    of_stream = pc.field("stream") == stream
    covered = pc.coalesce(pc.field("covered"), pc.field("count"), 1)
    has = (pc.field("first_seq") <= seq) & (pc.field("first_seq") + covered > seq)
    publish, answer = reading.publish or ("", "")
    kinds = pc.field("type").isin([*reading.carries, answer])
    rows = transfers.read(run, columns=_COLUMNS, chosen=of_stream & has & kinds).to_pylist()
    batches = [_copy(row, row["first_seq"], metadata) for row in rows if row["type"] in reading.carries]
    if not rows:
        raise AnalysisError(_missing_event(run, stream, seq, reading))
    answers = [row for row in rows if row["type"] == answer]
    request = None
    if publish == answer:  # the publisher numbers its events itself
        publishes, answers = _by_arrival([_copy(row, row["first_seq"], metadata) for row in answers]), []
    else:
        request = answers[0]["request"] + seq - answers[0]["first_seq"] if answers else None
        publishes = _publishes(run, answers[0], request, metadata) if request is not None else []
    return EventTrace(
        stream=stream,
        seq=seq,
        request=request,
        publish=publishes[0] if publishes else None,
        repeated=tuple(publishes[1:]),
        answered=_copy(answers[0], answers[0]["first_seq"], metadata) if answers else None,
        copies=tuple(batches),
        asked=_stream_requests(run, stream, batches, reading.asks),
    )


def _publishes(
    run: RunDirectory, answer: dict[str, Any], request: int, metadata: RunMetadata
) -> list[EventCopy]:
    """Return the publications that led to an answer, in the order of their arrival."""
    types = metadata.reading.publish or ("", "")
    count = pc.coalesce(pc.field("count"), pc.scalar(1))  # a message without a count has one
    has = (pc.field("request") <= request) & (pc.field("request") + count > request)
    of_stream = pc.field("stream") == answer["stream"]
    driver = (pc.field("receiver") == answer["receiver"]) | (pc.field("sender") == answer["receiver"])
    rows = transfers.read(
        run, columns=_COLUMNS, chosen=has & of_stream & pc.field("type").isin(types) & driver
    ).to_pylist()
    until = answer["t_ns"]
    earlier = [
        row["t_ns"]
        for row in rows
        if row["type"] == types[1] and row["t_ns"] < until and row["first_seq"] != answer["first_seq"]
    ]
    since = max(earlier, default=0)
    found = [
        _copy(row, row["request"], metadata)
        for row in rows
        if row["type"] == types[0] and since < row["t_ns"] < until
    ]
    return _by_arrival(found)


def _by_arrival(copies: list[EventCopy]) -> list[EventCopy]:
    return sorted(copies, key=lambda copy: (copy.complete_ns is None, copy.complete_ns or copy.t_ns))


def _stream_requests(
    run: RunDirectory, stream: int, batches: Sequence[EventCopy], asks: Sequence[str]
) -> tuple[StreamRequest, ...]:
    """Return the requests for the stream while the event was in transit."""
    if not batches or not asks:
        return ()
    times = TimeRange(min(copy.t_ns for copy in batches), max(copy.t_ns for copy in batches) + 1)
    kinds = pc.field("type").isin(asks)
    chosen = kinds & (pc.is_null(pc.field("stream")) | (pc.field("stream") == stream))
    columns = ("type", "sender", "receiver", "t_complete_ns")
    rows = transfers.read(run, times, columns, chosen & pc.is_valid(pc.field("t_complete_ns"))).to_pylist()
    return tuple(
        StreamRequest(row["type"], row["sender"], row["receiver"], row["t_complete_ns"]) for row in rows
    )


def _copy(row: dict[str, Any], first: int, metadata: RunMetadata) -> EventCopy:
    placeholder = metadata.reading.placeholder if row["type"] in metadata.reading.carries else None
    source, target = (
        None if row[name] is None else metadata.host_at.get(address_text(row[name])) for name in ENDS_COLUMNS
    )
    events = row["covered"] or row["count"] or 1
    return EventCopy(
        type=row["type"],
        sender=row["sender"] or row["src"],
        receiver=row["receiver"] or row["dst"],
        first=first,
        last=first + events - 1,
        sent_ns=row["t_sent_ns"],
        left_ns=row["t_left_ns"],
        arrived_ns=row["t_arrived_ns"],
        complete_ns=row["t_complete_ns"],
        collected=placeholder is not None and row["kind"] == placeholder,
        row=row,
        t_ns=row["t_ns"],
        fate=row["fate"],
        source=source,
        target=target,
    )


def _missing_event(run: RunDirectory, stream: int, seq: int, reading: Reading) -> str:
    """Return the error text for a missing event: unknown stream or unknown number."""
    kinds = pc.field("type").isin(reading.carries)
    there = transfers.read(run, columns=("stream", "first_seq", "covered"), chosen=kinds)
    streams = sorted(pc.unique(there.column("stream")).to_pylist())
    if stream not in streams:
        known = ", ".join(str(number) for number in streams) or "none"
        return f"{run.path}: no captured message has events of stream {stream}; streams there: {known}"
    own = there.filter(pc.equal(there.column("stream"), stream))
    first = pc.min(own.column("first_seq")).as_py()
    last = pc.max(pc.add(own.column("first_seq"), pc.fill_null(own.column("covered"), 1))).as_py() - 1
    return (
        f"{run.path}: no captured message has event {format_seq(seq)} of stream {stream}; "
        f"it has events {format_seq(first)} to {format_seq(last)}"
    )
