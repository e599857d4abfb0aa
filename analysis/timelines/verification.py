"""Verifies that clients received the published bytes, and nothing twice.

FIFO per publisher (Sprinkler 2.1) means that a driver's events have sequence numbers in the order of
publication. A driver records acknowledgements in the order of its requests, so their sequence numbers must
grow. An event with a lower number than an earlier event of the same driver is *unordered*. A restarted driver
continues after the events published before its restart.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis.arrays import Bools, Ints, begins, ints, rows
from analysis.timelines import schemas
from analysis.timelines.delivery.delivery_records import RecordedDeliveries, RecordedPublications
from analysis.timelines.delivery.epochs import epoch_layout
from analysis.timelines.delivery.sequence_intervals import (
    SPAN_BITS,
    Batches,
    in_group_spans,
    late_numbers,
    repeats,
    sums,
    totals,
    union,
    within,
)
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from node.core.deliveries import RecordKind

UNIQUE_BYTES = 10
"""Events of at least this size contain their whole request number and driver."""


@dataclass(frozen=True, slots=True)
class VerificationCounts:
    """Counts of events, by batch. unpublished: known to no publisher; invented: the part of these that equals
    no known event, either.
    """

    corrupted: Ints
    unverified: Ints
    unpublished: Ints
    invented: Ints


def verify(
    stream: Ints, got: RecordedDeliveries, known: RecordedPublications, new: Ints, metadata: RunMetadata
) -> VerificationCounts:
    """Compare each delivered batch with the published ones.

    stream: each batch's index in the run's list of streams. new: how many of its events are new to its
    client.
    """
    batches = in_group_spans(stream, got.first, got.reach)
    at = np.clip(np.searchsorted(known.batches.first_seq, batches.first_seq), 0, max(len(known.crc) - 1, 0))
    same = np.zeros(len(stream), bool)
    wrong = np.zeros(len(stream), bool)
    if len(known.crc):
        same = got.whole & (known.batches.first_seq[at] == batches.first_seq)
        same &= known.batches.count[at] == got.events
        wrong = same & (known.crc[at] != got.crc)
        wrong[wrong] = ~_like_any(batches.first_seq[wrong], got.events[wrong], got.crc[wrong], known)
        wrong |= _crc_diverges(stream, got, same & ~wrong, known, at)
    wrong |= _unlike_other_clients(batches.first_seq, got, same)
    held = within(known.runs, batches.first_seq, batches.end_seq)
    unacknowledged = np.where(got.events > 0, np.minimum(batches.count - held, new), 0)
    complete = _complete(metadata)[stream] if len(stream) else np.zeros(0, bool)
    repeated = (unacknowledged > 0) & _like_another(stream, got, same, known, metadata)
    twice = np.where(complete | repeated, unacknowledged, 0)
    unverified = np.where(same, 0, got.events - np.minimum(twice, got.events))
    comparable = _tells_events_apart(metadata) & got.whole & ~repeated
    return VerificationCounts(
        np.where(wrong, got.events, 0), unverified, twice, np.where(comparable, twice, 0)
    )


def _like_any(first_seq: Ints, count: Ints, crc: Ints, known: RecordedPublications) -> Bools:
    """Return whether each batch equals one of those published under its number, if there are several."""
    delivered = np.stack((first_seq, count, crc))
    published = np.stack((known.batches.first_seq, known.batches.count, known.crc))
    some = np.isin(published[0], first_seq)
    both = np.concatenate((published[:, some], delivered), axis=1)
    which = np.unique(both, axis=1, return_inverse=True)[1].reshape(-1)
    return np.isin(which[some.sum() :], which[: some.sum()])


def _unlike_other_clients(first_seq: Ints, got: RecordedDeliveries, same: Bools) -> Bools:
    """Return complete batches that no driver recorded and that differ from the same batch at another
    client.
    """
    wrong = np.zeros(len(first_seq), bool)
    some = np.flatnonzero(got.whole & ~same)
    order = some[np.lexsort((got.crc[some], got.events[some], first_seq[some]))]
    first, events, crc = first_seq[order], got.events[order], got.crc[order]
    equal = (first[1:] == first[:-1]) & (events[1:] == events[:-1])
    differ = np.flatnonzero(equal & (crc[1:] != crc[:-1]))
    wrong[order[differ]] = wrong[order[differ + 1]] = True
    return wrong


def _crc_diverges(
    stream: Ints, got: RecordedDeliveries, same: Bools, known: RecordedPublications, at: Ints
) -> Bools:
    """Return the batches at which a client's running CRC first differs from the driver's.

    Comparable only if one driver, started once, publishes the stream, and the client's session has it from
    its first event, complete and in order; other batches are not checked.
    """
    start, single = _starts(known, int(stream.max(initial=-1)) + 1)
    is_first = begins(got.session)
    expected = np.where(is_first, start[stream], np.roll(got.first + got.reach, 1))
    breaks = ~((got.first == expected) & same & single[stream])
    bad = np.cumsum(breaks)
    before = np.maximum.accumulate(np.where(is_first, bad - breaks, 0))
    chain = bad == before
    differs = np.flatnonzero(chain & (known.running[at] != got.running))
    diverging = np.zeros(len(stream), bool)
    diverging[differs[np.unique(got.session[differs], return_index=True)[1]]] = True
    return diverging


def _starts(known: RecordedPublications, streams: int) -> tuple[Ints, Bools]:
    """Return each stream's first published number, and whether one session of one driver published each
    number once.
    """
    start, single = np.zeros(streams, np.int64), np.zeros(streams, bool)
    low = np.searchsorted(known.stream, np.arange(streams + 1))
    for stream in np.flatnonzero(np.diff(low)).tolist():
        mine = slice(low[stream], low[stream + 1])
        start[stream] = known.batches.first_seq[mine][0] - (stream << SPAN_BITS)
        single[stream] = len(np.unique(known.driver[mine])) == 1 and not known.session[mine].any()
        single[stream] &= bool((known.batches.first_seq[mine][1:] >= known.batches.end_seq[mine][:-1]).all())
    return start, single


def _like_another(
    stream: Ints, got: RecordedDeliveries, same: Bools, known: RecordedPublications, metadata: RunMetadata
) -> Bools:
    """Return complete unacknowledged batches that equal an acknowledged one, or an earlier one."""
    found = np.zeros(len(stream), bool)
    if not _tells_events_apart(metadata):
        return found
    some = np.flatnonzero(got.whole & ~same)
    published = _content(known.stream, known.batches.count, known.crc)
    found[some] = np.isin(_content(stream[some], got.events[some], got.crc[some]), published)
    key = _content(got.group[some], got.events[some], got.crc[some])
    order = np.lexsort((got.first[some], key))
    equal = (key[order][1:] == key[order][:-1]) & (got.first[some][order][1:] != got.first[some][order][:-1])
    found[some[order[1:][equal]]] = True
    return found


def _tells_events_apart(metadata: RunMetadata) -> bool:
    """Return whether no two events of a stream have the same bytes."""
    return not metadata.keyed and (metadata.event_bytes or 0) >= UNIQUE_BYTES


def _content(stream: Ints, count: Ints, crc: Ints) -> Ints:
    """Return one number for place, count and CRC: all 32 bits of the CRC, 20 of the count, 12 of the
    place.
    """
    return ((stream & 0x7FF) << 52) | ((count & 0xFFFFF) << 32) | crc


def _complete(metadata: RunMetadata) -> Bools:
    """Return, for each stream, whether all of its drivers were alive to record all acknowledgements."""
    drivers = metadata.having(Trait.PUBLISHER)
    disturbed = {each for name in drivers if name in metadata.disturbed for each in metadata.named_as(name)}
    return np.array(
        [metadata.whole and disturbed.isdisjoint(metadata.publishing(stream)) for stream in metadata.owner],
        bool,
    )


def published_twice(stream: Ints, batches: Batches, streams: int) -> Ints:
    """Return, for each stream, the number of publications under a number that an earlier one has."""
    counted = sums(stream, batches.count, streams)
    return counted - totals(union(batches), streams)


def check_order(driver: str, records: pa.Table) -> pa.Table:
    """Return `schemas.PUBLISHERS` of one driver, from its rows of `schemas.RECORDS` sorted by position."""
    published = rows(records, kind=int(RecordKind.PUBLISHED))
    published = epoch_layout([published]).laid_out(published)
    streams, place = np.unique(ints(published, "stream"), return_inverse=True)
    batches = in_group_spans(place, ints(published, "first_seq"), ints(published, "count"))
    columns = [
        pa.repeat(pa.scalar(driver), len(streams)),
        pa.array(streams.astype(np.int32)),
        pa.array(totals(union(batches), len(streams))),
        pa.array(sums(place, late_numbers(batches) - repeats(batches), len(streams))),
        pa.array(published_twice(place, batches, len(streams))),
    ]
    return pa.table(columns, schema=schemas.PUBLISHERS)
