"""The events table: each batch that was published, arrived or was sent, with host and time. Table to table,
host by host.

Batches go from driver to head, down the chain, from its tail to the other regions' heads and to clients, and
from client to client. Each step is an arrival of its own, identified by host and peer.

A message that carries events (`Reading.carries`) *arrived* when a host received it completely, and was *sent*
when it left completely. A publication that arrived completely at a server is *published* at that time, under
the sequence numbers of the server's answer, or under its own. A repeated publication counts at its first
arrival. A restarted publisher numbers its requests from 1 again, so a publication belongs to the first answer
after it.

A forwarded message (`analysis.timelines.recovering.passing`) arrives only at its destination, and is sent
only by its originator: the peer is the other end, and `via` the forwarder. A forwarder *passed* it on, and
its peer is the host that it received the message from. If subscribers also serve others, events also arrive
by a publication.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import Ints, begins, codes, concatenated, decoded_values, ints, rows
from analysis.timelines import schemas
from analysis.timelines.coded_texts import coded_schema, one_text
from analysis.timelines.recovering.passing import end_hosts, own_and_forwarded, without_ends
from analysis.timelines.run_metadata import Host, RunMetadata, check_planned_streams
from experiments.declared import Trait

MESSAGE_COLUMNS = (
    "host", "direction", "src", "dst", "type", "within", "source", "target", "stream", "kind", "first_seq",
    "count", "covered", "request", "payload_length", "t_first_ns", "t_complete_ns", "key", "length",
)  # fmt: skip


CODED_EVENTS = coded_schema(schemas.EVENTS)


def from_messages(messages: Iterable[pa.Table], host: Host, metadata: RunMetadata) -> pa.Table:
    """Return rows of `schemas.EVENTS`, with texts as codes, from one host's rows of
    `analysis.schemas.MESSAGES`.

    Rows are sorted by time. messages: may come in parts if the host forwards nothing. A message that was
    never complete in order (earlier bytes are missing permanently) did not arrive. Raises AnalysisError for
    events of a stream that the run does not have.
    """
    publish = metadata.reading.publish if metadata.has(host, Trait.SERVER) else None
    found, handed_over = [], []
    for part in messages:
        complete = part.filter(pc.is_valid(part.column("t_complete_ns")))
        mine, passed = own_and_forwarded(complete, metadata)
        found += _carried(mine, passed, host, metadata)
        if publish is not None:
            handed_over.append(rows(mine, type=publish))
    if publish is not None and handed_over:
        found.append(_published(pa.concat_tables(handed_over), host, metadata, publish))
    events = concatenated(found, CODED_EVENTS).unify_dictionaries().sort_by("t_ns")
    check_planned_streams(events, metadata, "sent or received")
    return events


def _carried(messages: pa.Table, passed: pa.Table, host: Host, metadata: RunMetadata) -> list[pa.Table]:
    """Return the messages that carry events: a host's own, and those that it forwarded."""
    reading = metadata.reading
    carries = [*reading.carries, *(reading.publish[:1] if reading.publish and metadata.by_host else ())]
    batches, passing = (rows(each, type=carries) for each in (messages, passed))
    return [
        _moved(rows(batches, direction="in"), "arrived", "in", host, metadata),
        _moved(rows(batches, direction="out"), "sent", "out", host, metadata),
        _moved(without_ends(rows(passing, direction="in")), "passed", "in", host, metadata),
    ]


def _moved(events: pa.Table, kind: str, direction: str, host: Host, metadata: RunMetadata) -> pa.Table:
    """Return messages that carry events, in one direction."""
    gone = pc.fill_null(
        pc.equal(events.column("kind"), pa.scalar(metadata.reading.placeholder, pa.int32())), False
    )
    count, (peer, via) = _counts(events), _peers(events, direction, metadata)
    return _table(
        host,
        kind=one_text(kind, events.num_rows),
        peer=peer,
        via=via,
        stream=events.column("stream"),
        first_seq=events.column("first_seq"),
        count=pc.coalesce(events.column("covered"), count),
        events=pc.if_else(gone, 0, count),
        t_ns=events.column("t_complete_ns"),
        size=events.column("payload_length").cast(pa.int64()),
    )


def _published(messages: pa.Table, host: Host, metadata: RunMetadata, types: tuple[str, str]) -> pa.Table:
    """Return the publications, each range of numbers once.

    Their numbers are those of the first answer after them, or their own if the message is its own answer.
    """
    publish, answer_type = types
    asked = rows(messages, type=publish, direction="in")
    if publish == answer_type:
        return _numbered(asked, host, metadata)
    answered = rows(messages, type=answer_type, direction="out")
    places = list(metadata.hosts)
    both = (_peers(asked, "in", metadata)[0], _peers(answered, "out", metadata)[0])
    peer = np.concatenate([codes(each, places) for each in both])
    stream, request, t_ns = (
        np.concatenate([ints(table, name) for table in (asked, answered)])
        for name in ("stream", "request", "t_complete_ns")
    )
    answer = _next_answers(np.stack((peer, stream, request)), t_ns, asked.num_rows)
    known = np.flatnonzero(answer >= 0)
    first_seq = ints(answered, "first_seq")[answer[known]]
    order = np.lexsort((t_ns[known], first_seq, stream[known]))
    once = order[begins(stream[known][order], first_seq[order])]
    chosen = known[once]
    return _table(
        host,
        kind=one_text("published", len(chosen)),
        peer=decoded_values(peer[chosen], places),
        stream=stream[chosen],
        first_seq=first_seq[once],
        count=_counts(asked).to_numpy()[chosen],
        events=_counts(asked).to_numpy()[chosen],
        t_ns=t_ns[chosen],
        size=ints(asked, "payload_length")[chosen],
    )


def _numbered(asked: pa.Table, host: Host, metadata: RunMetadata) -> pa.Table:
    """Return the first arrivals of publications that publishers numbered themselves."""
    stream, first_seq = ints(asked, "stream"), ints(asked, "first_seq")
    order = np.lexsort((ints(asked, "t_complete_ns"), first_seq, stream))
    chosen = np.sort(order[begins(stream[order], first_seq[order])])
    once = asked.take(pa.array(chosen))
    return _table(
        host,
        kind=one_text("published", once.num_rows),
        peer=_peers(once, "in", metadata)[0],
        stream=once.column("stream"),
        first_seq=once.column("first_seq"),
        count=_counts(once),
        events=_counts(once),
        t_ns=once.column("t_complete_ns"),
        size=once.column("payload_length").cast(pa.int64()),
    )


def _counts(messages: pa.Table) -> pa.ChunkedArray:
    """Return the number of events in each message; 1 if it has no count."""
    return pc.fill_null(messages.column("count").cast(pa.int64()), 1)


def _next_answers(key: Ints, t_ns: Ints, asked: int) -> Ints:
    """Return, for each of the first `asked` rows, the first later row with its key among the other rows.

    Other rows count from 0; -1 if there is none. key: a row per part of the key.
    """
    rest = np.arange(key.shape[1]) >= asked
    order = np.lexsort((rest, t_ns, *key))
    position = np.arange(len(order))
    last = len(order) - 1
    following = np.minimum.accumulate(np.where(rest[order], position, last + 1)[::-1])[::-1]
    target = order[np.minimum(following, max(last, 0))] if len(order) else order
    same = (following <= last) & (key[:, target] == key[:, order]).all(axis=0)
    answer = np.full(len(order), -1, np.int64)
    answer[order] = np.where(same, target - asked, -1)
    return answer[:asked]


def _peers(messages: pa.Table, direction: str, metadata: RunMetadata) -> tuple[pa.Array, pa.Array]:
    """Return the originator or destination of each message (null if it is not a host of the run), and the
    forwarder (null if there is none).
    """
    neighbour = _connection_peers(messages, direction, metadata)
    end = end_hosts(messages.column("source" if direction == "in" else "target"), metadata)
    is_forwarded = pc.fill_null(pc.not_equal(end, neighbour), False)
    via = pc.if_else(is_forwarded, neighbour, pa.scalar(None, pa.string()))
    return pc.coalesce(end, neighbour), via


def _connection_peers(messages: pa.Table, direction: str, metadata: RunMetadata) -> pa.Array:
    """Return the host at the other end of each message's connection."""
    hosts = list(metadata.hosts.values())
    addresses = [host.address for host in hosts]
    return decoded_values(
        codes(messages.column("src" if direction == "in" else "dst"), addresses),
        [host.name for host in hosts],
    )


def _table(
    host: Host, *, kind: pa.Array, peer: pa.Array, size: pa.Array | Ints, **columns: pa.Array | Ints
) -> pa.Table:
    length = len(kind)
    place = {name: one_text(getattr(host, attribute), length) for name, attribute in
             (("host", "name"), ("region", "region"), ("role", "role"))}  # fmt: skip
    everything = {**place, "kind": kind, "peer": peer, "via": pa.nulls(length, pa.string()), "bytes": size}
    everything |= columns
    return pa.Table.from_arrays(
        [_column(everything[field.name], field.type) for field in CODED_EVENTS], schema=CODED_EVENTS
    )


def _column(values: pa.Array | Ints, kind: pa.DataType) -> pa.Array:
    return (pa.array(values) if isinstance(values, np.ndarray) else values).cast(kind)
