"""Whether clients got the bytes that were published, and nothing that was published twice.

Batches that have their publisher's boundaries are compared by CRC-32; a running CRC shows bytes that a client
delivered without recording them. Batches cut elsewhere, and those with tombstones in them, are *unverified*,
unless two clients have the same numbers with different bytes.

An event that no driver knows to be acknowledged is a retried publication that was numbered twice: drivers
retry until they have an answer, so once they lived to the end and everything was drained, there is no other
way for it to be there. Of a driver that was killed, the batches without an answer may be there, but once:
events carry their request and their driver, so the same count and CRC at two sequence numbers is the same
publication.
"""

from dataclasses import dataclass

import numpy as np

from analysis.timelines.arrays import Bools, Ints
from analysis.timelines.facts import Facts
from analysis.timelines.pieces import SPAN_BITS, shifted, within
from analysis.timelines.records import Got, Published
from experiments.declared import Trait

UNIQUE_BYTES = 10
"""From this size on an event holds its whole request number and driver."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Events of each batch."""

    corrupted: Ints
    unverified: Ints
    published_twice: Ints


def verify(stream: Ints, got: Got, known: Published, new: Ints, facts: Facts) -> Verdict:
    """Compare each delivered batch with what was published.

    stream: each batch's place in the run's list of streams. new: how many of its events are new to its
    client.
    """
    batches = shifted(stream, got.first, got.reach)
    at = np.clip(np.searchsorted(known.batches.first_seq, batches.first_seq), 0, max(len(known.crc) - 1, 0))
    same = np.zeros(len(stream), bool)
    wrong = np.zeros(len(stream), bool)
    if len(known.crc):
        same = got.whole & (known.batches.first_seq[at] == batches.first_seq)
        same &= known.batches.count[at] == got.events
        wrong = same & (known.crc[at] != got.crc)
        wrong |= _runs_astray(stream, got, same & ~wrong, known, at)
    wrong |= _unlike_other_clients(batches.first_seq, got, same)
    held = within(known.runs, batches.first_seq, batches.end_seq)
    unacknowledged = np.where(got.events > 0, np.minimum(batches.count - held, new), 0)
    complete = _complete(facts)[stream] if len(stream) else np.zeros(0, bool)
    repeated = (unacknowledged > 0) & _like_another(stream, got, same, known, facts)
    twice = np.where(complete | repeated, unacknowledged, 0)
    unverified = np.where(same, 0, got.events - np.minimum(twice, got.events))
    return Verdict(np.where(wrong, got.events, 0), unverified, twice)


def _unlike_other_clients(first_seq: Ints, got: Got, same: Bools) -> Bools:
    """Whole batches that no driver has on record, and that are another one at another client."""
    wrong = np.zeros(len(first_seq), bool)
    some = np.flatnonzero(got.whole & ~same)
    order = some[np.lexsort((got.crc[some], got.events[some], first_seq[some]))]
    first, events, crc = first_seq[order], got.events[order], got.crc[order]
    alike = (first[1:] == first[:-1]) & (events[1:] == events[:-1])
    differ = np.flatnonzero(alike & (crc[1:] != crc[:-1]))
    wrong[order[differ]] = wrong[order[differ + 1]] = True
    return wrong


def _runs_astray(stream: Ints, got: Got, same: Bools, known: Published, at: Ints) -> Bools:
    """Batches at which a client's running CRC first leaves the driver's.

    Comparable only where one driver, started once, publishes the stream, and the client's session has it
    from its first event, whole and in order; elsewhere nothing is said.
    """
    start, single = _starts(known, int(stream.max(initial=-1)) + 1)
    previous_end = np.concatenate((np.zeros(min(len(stream), 1), np.int64), (got.first + got.reach)[:-1]))
    begins = np.concatenate((np.ones(min(len(stream), 1), bool), got.session[1:] != got.session[:-1]))
    follows = got.first == np.where(begins, start[stream], previous_end)
    bad = np.cumsum(~(follows & same & single[stream]))
    before = np.maximum.accumulate(np.where(begins, bad - ~(follows & same & single[stream]), 0))
    chain = bad == before
    differs = np.flatnonzero(chain & (known.running[at] != got.running))
    astray = np.zeros(len(stream), bool)
    astray[differs[np.unique(got.session[differs], return_index=True)[1]]] = True
    return astray


def _starts(known: Published, streams: int) -> tuple[Ints, Bools]:
    """Each stream's first published number, and whether a single session of one driver published it."""
    start, single = np.zeros(streams, np.int64), np.zeros(streams, bool)
    low = np.searchsorted(known.stream, np.arange(streams + 1))
    for stream in np.flatnonzero(np.diff(low)).tolist():
        mine = slice(low[stream], low[stream + 1])
        start[stream] = known.batches.first_seq[mine][0] - (stream << SPAN_BITS)
        single[stream] = len(np.unique(known.driver[mine])) == 1 and not known.session[mine].any()
    return start, single


def _like_another(stream: Ints, got: Got, same: Bools, known: Published, facts: Facts) -> Bools:
    """Whole batches without an acknowledgement that are like one elsewhere: acknowledged, or before it."""
    found = np.zeros(len(stream), bool)
    if facts.keyed or (facts.event_bytes or 0) < UNIQUE_BYTES:
        return found
    some = np.flatnonzero(got.whole & ~same)
    published = _content(known.stream, known.batches.count, known.crc)
    found[some] = np.isin(_content(stream[some], got.events[some], got.crc[some]), published)
    key = _content(got.group[some], got.events[some], got.crc[some])
    order = np.lexsort((got.first[some], key))
    alike = (key[order][1:] == key[order][:-1]) & (got.first[some][order][1:] != got.first[some][order][:-1])
    found[some[order[1:][alike]]] = True
    return found


def _content(stream: Ints, count: Ints, crc: Ints) -> Ints:
    """One number for place, count and CRC: all 32 bits of the CRC, 20 of the count, 12 of the place."""
    mixed: Ints = ((stream & 0x7FF) << 52) | ((count & 0xFFFFF) << 32) | crc
    return mixed


def _complete(facts: Facts) -> Bools:
    """For each stream, whether every driver of it lived to write down all its acknowledgements."""
    drivers = facts.having(Trait.PUBLISHER)
    disturbed = {word for name in drivers if name in facts.disturbed for word in facts.named_as(name)}
    return np.array(
        [facts.whole and disturbed.isdisjoint(facts.publishing(stream)) for stream in facts.owner], bool
    )
